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
// Files are 0600 in a folder of mode 0700: the file system decides who may join, the server refuses everybody else.
//
// # The life of a server
//
// The first process that attaches takes the lock, starts the server on 127.0.0.1 and connects to it in process. Whoever comes later finds the lock
// taken, reads server.json and connects over TCP. Each of them keeps asking for the lock; when the owner ends, in whatever way, the
// kernel frees it and one of the others gets it: that one starts a server on the same store, with the same key and, unless
// something else took it meanwhile, the same port. Connections look up the address each time they dial, so all of
// them find the new server by themselves.
//
// # Promises
//
//   - Two servers never share a store: the lock is the truth, a file left behind by a dead process is only a hint.
//   - Nobody without the key is served: anonymous clients are refused, monitoring and websocket ports are off.
//   - Close returns when the server is down, everything it acknowledged is stored and the lock is free.
package embedded
