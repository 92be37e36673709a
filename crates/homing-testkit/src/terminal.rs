//! The command line as a person sees it: on a terminal.

use std::ffi::OsStr;
use std::io::Read;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

use crate::home::Home;

impl Home {
    /// What a call of the command line writes to a terminal, to the last byte.
    #[must_use]
    pub fn on_terminal<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("a terminal").into_string().expect("a name");
        let slave = std::fs::File::options().read(true).write(true).open(name).expect("a terminal");
        let mut modes = tcgetattr(&slave).expect("a terminal");
        modes.output_modes -= OutputModes::OPOST;
        tcsetattr(&slave, OptionalActions::Now, &modes).expect("a terminal");
        let mut command = self.command();
        command.env("TERM", "xterm").args(arguments).stdout(slave);
        let mut child = command.spawn().expect("the binary runs");
        drop(command);
        let (mut seen, mut buffer, mut master) = (Vec::new(), [0; 4096], std::fs::File::from(master));
        // A terminal whose last user is gone answers with an error.
        while let Ok(count) = master.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..count]);
        }
        child.wait().expect("the binary ends");
        seen
    }
}
