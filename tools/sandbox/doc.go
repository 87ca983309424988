// Package sandbox runs commands that nobody trusts to clean up after themselves: it turns an exec.Cmd and a Policy into a
// started command and a handle on everything the command starts.
//
// # The life of a command
//
//	worker                 Start, Kill, Wait
//	 └ init                this program again, re-executed; Main dispatches it before anything else
//	    └ command          its own session, stdin empty, stdout and stderr in two pipes to the worker
//	       └ …             whatever it starts, daemons included
//
// Start makes a socket pair and re-executes the program as the command's init. What to run goes over the socket, never over
// argv or the environment, which other users can read. The init marks every inherited descriptor close-on-exec, sets up its rung
// (below), starts the command and says so; an error up to there comes back from Start and means that the command never ran.
//
// The end of the worker's side of the socket, by Kill or by the worker's death, however sudden, ends the tree. So does the end of
// the command: what it left behind gets a moment to finish by itself (a `tee` at the end of a process substitution), then it is
// killed and counted. The init reports the command's status, how many it ended and how many it could not, and exits; Wait returns
// after that, with both streams drained.
//
// # Rungs
//
// How a tree is ended depends on what the machine allows, which Probe finds by doing it once:
//
//	pidns       a pid namespace with its own /proc, in a user namespace when not root. The init is process 1 there, so that the
//	            kernel ends the rest with it: nothing survives, and the end of the init proves it. Process numbers inside are high:
//	            a number that a command wrote into a file names no process of the host.
//	subreaper   no namespaces. Orphans fall to the init, which stops and kills its descendants, found in /proc, until none is
//	            left. Whoever may kill the init can get away; that is reported, and what can still be found is killed.
//	pgroup      other systems than Linux: the process group. A daemon that left it survives: best effort, and said.
//
// # Promises
//
//   - Wait returns only when the tree is gone (or says how many survive) and both streams are drained or given up after a bound.
//   - A process that holds stdout does not hold Wait; a command that closes its stdout is not taken for ended.
//   - The command's environment is exactly Policy.Env; its signal dispositions and mask are the defaults, its umask 022, its
//     limits those of the worker; it has no controlling terminal and no descriptor beyond 0, 1 and 2.
//   - Kill may be called at any time, from anywhere, again and again.
//   - A policy that this build cannot honour is refused. Files and network are not confined here yet.
package sandbox
