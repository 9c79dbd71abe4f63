//! Memory that goes back to the system when a crowd has left.
//!
//! The allocator keeps what lies below the last piece that is in use; with the places of connections
//! between the buffers of a crowd, that is nearly all of them. It never decides when: the core knows
//! what the crowd held.

/// Gives back what is free: some milliseconds for 32 MB. Where the allocator has no such call, it does
/// as it always does.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the one call of the allocator that no safe crate offers"
)]
pub fn give_back() {
    // SAFETY: it takes a number alone, and may be called at any time (malloc_trim(3)).
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
