// Package archtest holds the shape of the tree: which package may import which, who may use which outside module, how
// large things may be, and the habits that a machine can check. It has tests only; nothing imports it.
//
// The tables are in table_test.go. A violation is a question about the design: the message says what to do, and
// changing a table instead is a decision that a reader of the change can see.
//
// The checks read source files of every platform, not only of the one they run on, and each of them is itself tested on
// small bad sources (bad_test.go), so that none of them can pass by finding nothing.
package archtest
