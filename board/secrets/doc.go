// Package secrets takes the values of secrets out of texts: out of what a model is shown, what the board keeps, and what is logged.
//
// # What is found
//
// A Redactor knows values (a key, a password, a file), each with a name, and the shapes of well-known keys. Where a text holds one of them,
// the words "[redacted NAME]" stand in its place.
//
//	a value    as it is, percent-encoded (every usual set of kept characters, either case), hex (either case), base64 (both alphabets, at all
//	           three alignments), escaped as in JSON, Go or HTML; across line breaks every 24 bytes or more (base64 that is wrapped, a key of
//	           many lines), indented, or with the line numbers of read_file
//	a line     of a value of many lines, from 16 characters on
//	a part     at least half of a value, and 12 characters: where an output was cut in two, what is shown is no more than the lesser part;
//	           beside the mark of a cut (…) 8 characters of its beginning or end
//	a shape    keys of AWS, GitHub, GitLab, Slack, Anthropic, OpenAI, Google, Stripe, npm, PyPI and Hugging Face, JWTs, PEM private keys, nkey seeds,
//	           what follows "Authorization: Bearer", and the password in scheme://user:password@host
//
// The values are those that a configuration names, and those of environment variables that look like credentials by their names
// (FromEnvironment); of a job, what looks so in its own environment.
//
// # Where it is used
//
// tools.Set puts every reply and every journalled argument through one; package board every event, entry, result and worker that it writes
// (Config.Secrets); the programs their log and the errors that they print. Files and patches stay what they are: a job must get the bytes
// that it left.
//
// # Promises
//
//   - No value comes through in one of these forms, in whatever pieces a stream (Writer) is written.
//   - A text without them comes back as it was, without a copy. Redacting twice is the same as once.
//   - JSON stays valid: values are looked for in its strings, after unescaping, and replaced there. A number is left alone.
//   - Time is linear in the text, and a clean one costs little: literal bytes are looked for, and what they find is looked at closely. (A long
//     value that is like itself over and over costs its length for each byte of a text that is like it.)
//
// # Limits
//
// This is hygiene. A program that means to get a value out can always reverse, encrypt or spell it; hex with blanks in it (a dump), and a
// key that was never named and is encoded, or has no shape of its own (an AWS secret access key), pass too. The barrier is that commands never have the secret.
// A value under 8 characters is refused: it stands in so many harmless texts that nothing would be left of them.
// A stream holds back at most 64 KiB: of a longer private key that nobody named, what comes later passes.
package secrets
