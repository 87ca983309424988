// Package budget holds the limits of everything that an agent may use or bring back.
//
// A limit that is missing does not fail: it lets a model reason, with confidence, from half of the data, or lets one
// command eat the memory of a worker. So every number of the program lives here, in one table, and so does every way
// to cut something: nothing is dropped without a notice, and a notice never guesses.
//
// # Caps
//
// [Caps] is the table itself: a field is a cap, its tags are its default, its value in the preset "compact", its range
// and its meaning. What protects memory is counted in bytes (…Bytes), what a model sees in Unicode code points
// (…Chars), wall time in seconds (…Secs), the rest in rows. A [Choice] is what a profile, a plan, a job or a flag says
// of them; it becomes Caps when it is checked, which is when a job is submitted and not when a tool runs.
//
// # The life of an output
//
// A process writes without end; a [Capture] takes all of it, at the speed of a copy, and keeps the first and the last
// bytes within a fixed memory while it counts what passed in between. [Plain] makes text of what was kept: escape
// sequences gone, progress bars collapsed, bytes that are no UTF-8 replaced. [Clip] cuts the text to what a model may
// see and puts the one notice where the cut is. [Preview] makes the single line that the board shows of a result.
//
// # Promises
//
//   - The cap holds for the whole, the notice included, in the unit that the notice names.
//   - The numbers of a notice are exact. There is no notice where nothing was cut.
//   - No cut is ever inside a code point, and none inside a grapheme cluster in a preview.
//   - Any input is taken, of any size, valid UTF-8 or not, in linear time.
package budget
