// Package patch reads patches and applies them to texts. It opens no file: names and texts go in, names and texts come out.
//
// # The life of a patch
//
// [Parse] reads a text: unified diffs of one or many files, with or without git's own headers, or the form that begins with "*** Begin Patch". What
// stands before, between and after the diffs (a mail, Markdown) is passed over, unless it looks like lines of a hunk that were lost. [Patch.Locate] decides
// once, for the whole patch and by what exists, whether names have a prefix such as a/ and b/ that is no folder. [File.Apply] makes the new text of one file,
// or says of every hunk that cannot be placed why not, and where.
//
// # Where a hunk goes
//
// Its old lines must stand in the text. They are looked for byte for byte; then without regard to line ends (LF, CRLF, none at the end of the file);
// then without regard to blanks at the ends of lines. The first of these that finds any place decides:
//
//   - at the line that its header says: there, if the hunks around it have not moved;
//   - at exactly one place: there, and [Note] says that the number was wrong;
//   - at several: where the hunks around it have moved to, or where it alone fits between them; else an error that lists the places.
//
// Hunks do not have to come in order. All of them are matched against the same text, the one before the patch. A hunk without old lines (diff -U0) goes
// exactly where its header says. What comes after "\ No newline at end of file" can only be the end.
//
// A hunk whose new lines stand where its old ones are missed is applied already. It is not applied again, also where its old lines would match a second
// time: an addition at the end of a hunk, where the format has it at the end of the file, and one that finds its old lines elsewhere. A file of
// which all hunks are applied already is left as it is.
//
// # What is kept
//
// A hunk that matches byte for byte is applied byte for byte: it may change line ends, blanks and the last newline. For one that does not, the file has the
// last word: context stays as the file has it, and an added line takes the end of the line that it replaces, or of its neighbour.
package patch
