//! How the connections of a source are closed: one, or all of them when its exchange is reached elsewhere or
//! the source ends.

use super::Connections;
use crate::core::Action;
use crate::core::context::Context;
use crate::core::sources::task::Profile;

impl Connections {
    /// The exchange is reached elsewhere from now on: every connection is closed. Their requests have been
    /// put back.
    pub fn reroute(&mut self, profile: &Profile, cx: &mut Context) {
        self.close_all(cx);
        let mut new = Connections::new(profile, self.all.len());
        new.succeed(self);
        *self = new;
    }

    /// Closes a connection. Its request stays.
    pub(super) fn close(&mut self, conn: usize, cx: &mut Context) {
        self.all[conn].connecting.close();
        if let Some(key) = self.all[conn].key.take() {
            cx.actions.push_back(Action::Close(key));
        }
    }

    /// Closes every connection. Their requests have been put back.
    pub fn close_all(&mut self, cx: &mut Context) {
        for conn in 0..self.all.len() {
            self.close(conn, cx);
        }
    }

    /// Takes the place of connections that are closed. A look-up of theirs may be under way.
    pub fn succeed(&mut self, former: &Connections) {
        self.addresses.succeed(&former.addresses);
    }

    /// Passes over the addresses of the former host. `true`: these were not ours.
    pub fn skip_former_name(&mut self, cx: &mut Context) -> bool {
        let is_former = self.addresses.skip_former();
        if is_former && self.all.iter().any(|it| it.is_resolving()) {
            self.look_up(cx);
        }
        is_former
    }
}
