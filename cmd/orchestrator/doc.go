// Command orchestrator splits a task over agents and shows the board they share.
//
// # One machine
//
// `orchestrator run` needs nothing else: it attaches to the embedded server of the project's data folder (starting it when nobody has),
// works in this process, shows the board live and prints the result. Other commands on the same folder, during or
// after, see the same board: list, show, logs, collect, kill, watch, workers; none of these makes one. A run whose own jobs have ended claims
// no more and finishes what it has begun for other runs. Commands that wait (watch, collect --wait, logs -f) look after the board meanwhile, as its steward,
// since they may be all that is left of those that shared it. `serve` keeps the server and its
// workers up.
//
// `doctor` looks at this machine (patient.go has the checks) and at the board where there is one, and starts nothing.
//
// # Many machines
//
// With --connect (or NATS_URL) every command speaks to a NATS server instead, and `run` leaves the work to the workers there.
//
// # The files here
//
// One a command: newX builds its flags, xOptions holds them, runX works. What several share: session.go (the open board), submission.go (a prompt or a
// plan becomes jobs on the board), view.go (the live board, with what is logged above it), input.go (prompts and plans, which may be
// pipes), left.go (what did not come along into a copy or a patch), rows.go (what is printed of an entry), lines.go (the input of call).
//
// Exit codes are those of package app.
package main
