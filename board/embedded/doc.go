// Package embedded is the NATS server of one machine: it runs inside a process that uses it, on a data folder, and is the
// only code that links nats-server.
//
// # The folder
//
//	lock         held (flock) by the process whose server uses the store; its text names that process
//	user.nk      seed of the one user, made once; whoever can read it may connect
//	server.json  where the server listens, and who runs it
//	jetstream/   the store
//
// Files are 0600, folders made here 0700: the file system decides who may join, the server refuses everybody else. A folder that was
// there keeps its mode; one that others can write to, or that holds other things, is refused and left as it is.
//
// # The life of a server
//
// The first process that attaches takes the lock, starts the server on 127.0.0.1 and connects to it in process. Whoever comes later finds the lock
// taken, reads server.json and connects over TCP. Each of them keeps asking for the lock; when the owner ends, in whatever way, the
// kernel frees it and one of the others gets it: that one starts a server on the same store, with the same key and, unless
// something else took it meanwhile, the same port. Connections look up the address each time they dial, so all of
// them find the new server by themselves. A request under way when its server dies is lost; who sent it must ask again.
//
// Once a second the owner looks after what it owns: an address or a key that is gone from the folder or damaged is written again, and
// a store that could not write (it then refuses every write, for good) is opened anew by a restart in place, at the same address,
// as soon as its disk has room.
//
// # Promises
//
//   - Two servers never share a store: the lock is the truth, a file left behind by a dead process is only a hint.
//   - Nobody without the key is served: anonymous clients are refused, monitoring and websocket ports are off.
//   - The disk is the only limit of the store. A server starts only where 4 MiB can be written, for recovering a store without
//     room would end the process; a full disk is named, with what is free and what to do, by Attach and, while serving, once in Options.Log.
//   - Attach ends with its context. After two seconds it says in Options.Log whom it waits for, and its error says so too.
//   - Close returns when the server is down, everything it acknowledged is stored and the lock is free.
package embedded
