// Package app is what both programs share at their edge: how a command line becomes a call, a connection and an exit code.
//
// # The life of a command
//
// Run parses the arguments (flags may stand before and after the others), puts a context in their hands that the first SIGINT, SIGTERM or SIGHUP
// cancels, and turns the error that comes back into a message, a hint and an exit code. The second signal ends the process at once.
//
//	Connection   which board: --connect, else NATS_URL, else the embedded server of the project's data folder
//	Out          results on stdout: a table for people, or --json
//	Report       the one place where an error becomes words and a number
//
// # Exit codes
//
//	0    done
//	1    failed (a job that failed, was lost or was denied too)
//	2    usage: the command line or a plan is wrong; nothing was done
//	3    partial: a job handed back what it had at a limit
//	4    killed
//	5    cannot connect
//	130  interrupted (143 by SIGTERM, 129 by SIGHUP)
//
// # Promises
//
//   - Results go to stdout, everything else to stderr.
//   - Whatever text reaches a terminal is sanitised here: it shows, and nothing in it is obeyed, hides or turns what stands there. A result that
//     goes into a file or a pipe is byte for byte; tables, fields of one line, JSON, log records and errors are clean there too.
//   - A record of the log is one line, and what an error quotes is set in, so that no value can pass for a line of the program's.
//   - What is Hidden (package secrets) is in no log record and no error.
//   - There are no pages: nothing in the programs writes HTML.
//   - Nothing here links the NATS server: a program that may own one hands in the function that attaches to it.
package app
