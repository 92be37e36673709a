# What docs/session.svg shows: `cargo xtask record` runs these lines on a terminal and draws what they print.
homing run --name build -c 'echo linking; sleep 8; exit 7'
sleep 1; homing list
kill -9 $(homing status | grep -oP '^daemon +pid \K\d+')     # kill the daemon
homing wait build; echo "exit code $?"
homing output build
homing inbox
homing ack build
