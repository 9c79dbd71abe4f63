//! Returns free memory to the system after many clients have left.
//!
//! The allocator keeps all free memory below the highest block in use, which is nearly all of it when
//! entries of connections lie between the freed buffers. The core decides when to call this.

/// Returns free memory to the system. Takes some milliseconds for 32 MB.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the one call of the allocator that no safe crate offers"
)]
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes only a number and may be called at any time.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
