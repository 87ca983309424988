// Command worker does the jobs of a board that is kept elsewhere: it connects to a NATS server, claims jobs of its pools while it has free
// slots, and runs each as an agent in a workspace of its own.
//
// It starts only on a machine that confines the commands of jobs at --sandbox-min (full) or better, and says what is missing otherwise. Jobs
// that ask for more than it has it leaves to other workers. Credentials are taken out of its environment before anything is started.
//
// It comes back to the server for ever once it was connected. The first SIGINT, SIGTERM or SIGHUP stops new claims and hands what runs back to the
// queue, within 20 seconds; the second ends the process at once, and its processes with it. Jobs of a worker that dies are
// done by another, once its lease has run out.
//
// The NATS server is not linked in. Exit codes are those of package app.
package main
