// Package board is the shared board: the one place where the state of every job is kept, and the only code that speaks NATS.
//
// # Three things for one job
//
// A job is kept three times, each time for another question:
//
//   - the log (what happened?): a stream of events, first its specification, last its result;
//   - the entry (how is it now?): one small value in a key-value bucket, changed by compare-and-set only;
//   - the pointer (who does it next?): one small message in a work queue.
//
// They are written in this order, so that a crash between any two leaves something with one meaning: a log without entry is
// garbage, an entry without pointer gets one from the steward, a pointer without entry is put back and dropped after a minute.
//
//	what       name                                     kind
//	log        <PREFIX>_EVENTS                          stream, limits, <prefix>.events.<run>.<job>.<kind>
//	entry      <prefix>_board                           bucket, history 1, <run>.<parent or "root">.<job>
//	pointer    <PREFIX>_JOBS                            stream, work queue, <prefix>.jobs.<pool>.<priority>.<job>
//	workers    <prefix>_workers                         bucket with a TTL, one key a worker, and the steward's
//	artifacts  <prefix>_artifacts                       object store, named by SHA-256
//	memories   <prefix>_memory                          bucket, <hash of the project>.<memory>
//	questions  <prefix>_approvals                       bucket, <run>.<job>.<n>, and rules <run>.always.<hash>
//	nudge      <prefix>.ctl.<job>                       core message: "look at your entry"
//
// # Life of a job
//
//	            Submit                      claim                     finish
//	blocked ──────────────▶ queued ──────────────────────▶ running ───────────▶ done, partial, failed, denied
//	   │     (After holds,    ▲ │                           │  ▲  │
//	   │      a free place)   │ │ kill, deadline            │  │  └─────────────▶ killed, lost
//	   │                      │ ▼                           ▼  │
//	   └──▶ failed, killed    │ killed, failed, lost      waiting (for children; holds no slot)
//	                          └─────────────────────────────┘
//	                            retry, hand-back, worker died
//
// The table is transitions in job.go, and every change goes through it. A terminal state never changes.
//
// A worker (Serve) pulls a pointer only for a free slot, reads the entry, and claims it: state running, epoch + 1, its own name. It claims
// only while its heartbeat is on the board.
// A job that it is unfit for in particular (Worker.Fits: the job asks for a better sandbox than its machine has) it leaves to others
// before that, and says so on the entry and in the log.
// The epoch counts holders, the attempt counts failures: a clean stop hands the job back and spends no attempt, an error, a crash or a
// silent worker does. When the attempts are used up the job is lost, with its reasons. A worker that is itself the fault (ErrUnfit) hands
// back and rests; one that drains (Worker.Drain) lets what runs end, and goes on claiming only while a job that it holds has live children.
//
// Whoever queues a job again, for whatever reason, writes the entry with the next pointer number, publishes that pointer, and only then
// acknowledges the one it had. Nothing is put back with a negative acknowledgement that must not be lost: the queue's server keeps those in
// memory. A retry's pointer follows after its delay (Entry.Delay); when the process that owes it ends, it comes at once, and when it dies,
// the steward's does. An older pointer is dropped when it is delivered.
//
// While the handler runs, its Lease keeps the queue from delivering the pointer again (in-progress) and writes the entry at each beat.
// A kill is a flag on the entry; the holder finds it at its next write, at once when nudged, and ends the handler with ErrKilled.
//
// # Fencing
//
// Whoever was silent for longer than the lease may have lost its job without knowing. Two things keep it from doing harm, and both are
// decided by the server: an entry is written at the holder's own revision, and an event is appended with the expected last sequence
// of the job's log. When one of them is refused the holder reads again. Same epoch: somebody set the kill flag, or wrote a note; it goes
// on. Another epoch: the lease is lost (ErrLeaseLost), the handler is cancelled, and nothing more is written. A holder that had no
// confirmed write for the whole lease cancels itself before the queue delivers again.
//
// A job finishes in this order: result event, end of the children that nobody detached, terminal entry that names the event's sequence,
// confirmed acknowledgement. A holder that dies after the result event has finished the work: the next claim takes that result and
// runs nothing. A result that the store does not take is kept and tried again as long as the lease holds.
//
// # Kill
//
// All jobs that are killed together are flagged first, ancestors before descendants; then each is ended where nobody holds it, or its holder told.
// A line says "killed" only of what is proved: of a worker without heartbeat nothing is, and asking again does not change that. A job after a
// killed one fails, two seconds later, unless the kill has come to it too.
//
// # Questions to people
//
// A job whose submitter said how long (Job.AskFor) may ask a person about a call (Lease.Ask): it waits without a slot, and the question stands on the
// board with the exact arguments of the call and their hash. An answer is written over it by compare-and-set, so nothing is answered twice; it
// outlives the holder that asked, and serves no other call. Past its deadline a question is denied. With an approval goes, where the person says
// so, a rule for the rest of the run (AlwaysOf); what it means, package tools/rules knows.
//
// # A server that changes hands
//
// Everything sent to a server that then ends is never answered. So every request is tried for a second first, and again, longer, until it
// works; watches begin anew at each reconnection; transfers go on from where they stood. All that is repeated carries a message id, an
// expected sequence, or changes nothing the second time.
//
// # Sizes
//
// Entries stay under 4 KiB. An event over half of the server's message limit keeps its data in the artifact store (Event.Spill); readers
// never see the difference. A result's text is whole, byte for byte, whatever its size; its preview has at most 500 characters.
//
// # Secrets
//
// Nothing is written to the board before it was looked through for secrets (Config.Secrets, package secrets): the data of events, the texts
// of entries and results, what a worker says of itself. What looks like a credential in a job's own environment is a secret of that job.
// Three things are kept as they are. A specification but for its titles, since every holder needs the whole of it: people are shown it by
// Board.Shown and ShownEvent. Artifacts that Put is given, since those are files: packs, patches, scripts. And names, by which a job is found: one that
// holds a secret is refused. Whoever goes on with a job reads its log, so what was a secret in it stays redacted to him.
//
// # Memories
//
// What agents of a project want each other to know is no job's, outlives them all, and is kept by project (Job.Project: whoever submits decides it,
// no worker does). A memory is written only by who has seen all of its project, so that one sentence is one entry; see memory.go and package memory.
//
// # Who looks after what nobody holds
//
// One of the serving processes is the steward (steward.go): conditions that became true or never can, places among siblings,
// entries without pointer, jobs of workers whose heartbeat is gone, deadlines, children of a parent that ended. All of it is idempotent:
// two stewards at once do no harm.
package board
