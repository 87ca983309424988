// Command bench measures Muster beside the tools that people use now: grep and glob beside ripgrep and fd, a command's output beside cat, a
// sandboxed command beside a plain one, edits beside sed and patch.
//
//	cd bench && go run .                       # everything, with twelve rounds each
//	go run . --only grep --rounds 30
//	go run . --json >figures.json
//
// A row runs both sides in one run, in turn (A B A B …), each as a process of its own from its start to its end, and tells the least, the
// median and the greatest of the ratios of neighbours: ours over theirs in wall time, so less is better. Beside it stand the median wall
// times, the ratio of the processor time of both, and the greatest memory that each process held (the system counts no process as smaller
// than this one was when it started it, some 15 MiB). The machine's load before and after is
// told too: on a busy machine the ratio of neighbours still says something, the times say little.
//
// Before it is measured, a row is checked: both sides must find the same number of lines or files, or the row says that they differ.
//
// Peers that are not installed are left out, with the way to get them. This is a module of its own, so that what it needs stays out of Muster's.
package main
