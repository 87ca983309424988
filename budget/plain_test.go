package budget

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"plain\ttext\n中文 👍\n":            "plain\ttext\n中文 👍\n",
		"10%\r20%\r100%\n":               "100%\n",
		"before\n10%\r20%\rdone":         "before\ndone",
		"100%\r50%\n":                    "50%%\n", // what a terminal shows: nothing erased the rest
		"100%\r\x1b[K50%\n":              "50%\n",
		"100%\r\x1b[2K\x1b[1G50%\n":      "50%\n",
		"working 10%\x1b[3D25%\n":        "working 25%\n",
		"abc\x1b[2G\x1b[1CX":             "abX",
		"abc\x1b[99999999999999999999GX": "abcX",
		"a\r\nb\r\n":                     "a\nb\n",
		"a\r\r\nb":                       "a\nb",
		"last state\r":                   "last state",
		"abc\b\bX\n":                     "aXc\n",
		"\b\bx":                          "x",
		"b\bbo\bol\bld":                  "bold",
		"|\b/\b-\b\\\bok":                "ok",
		"a\x00b\x00c\n":                  "a␀b␀c\n",
		"bell\a form\f vt\v del\x7f":     "bell form vt del",
		"e\xff\xe4\xb8.":                 "e\ufffd\ufffd\ufffd.",
		"\ufffd stays":                   "\ufffd stays",
		"next\u0085line":                 "nextline",
		"\x1b[31mred\x1b[0m and \x1b[1;38;5;200mbold\x1b[m": "red and bold",
		"\u009b31mred":                                 "red",
		"\x1b]0;title\atext":                           "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;":           "link",
		"\x1b]52;c;ZXZpbA==\u009ctext":                 "text",
		"\x1b]0;never ended\nnext line":                "\nnext line",
		"\x1bPq#0;2\n!12~\x1b\\after":                  "after",
		"\x1bPnever ended\nnext\x1b[0m line":           "\nnext line",
		"\x1b_app\x1b\\\x1b^priv\x1b\\\x1bXsos\x1b\\z": "z",
		"\x1b(Btext\x1b7\x1b8\x1b=\x1bc":               "text",
		"\x1b]0;cancelled\x18text":                     "text",
		"\x1b":                                         "",
		"\x1b[":                                        "",
		"\x1b[31":                                      "",
		"\x1b[31é":                                     "é",
		"\x1b中":                                        "中",
		"\x1b[?25l\x1b[2J\x1b[Htop":                    "top",
		"one\x1b[\r\ntwo":                              "one\ntwo",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

// checkPlain fails t where text is no plain text, or plain text would be changed again.
func checkPlain(t interface{ Fatalf(string, ...any) }, s string) {
	got := Plain(s)
	if !utf8.ValidString(got) {
		t.Fatalf("Plain(%q) is invalid UTF-8: %q", s, got)
	}
	for _, r := range got {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || 0x80 <= r && r <= 0x9f {
			t.Fatalf("Plain(%q) holds %U: %q", s, r, got)
		}
	}
	if again := Plain(got); again != got {
		t.Fatalf("Plain twice of %q: %q, then %q", s, got, again)
	}
	if strings.Count(got, "\n") > strings.Count(s, "\n") {
		t.Fatalf("Plain(%q) has more lines: %q", s, got)
	}
}

func TestPlainKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPlain(t, texts().Draw(t, "s")) })
}

func TestPlainKeepsTextAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "中", "👨‍👩‍👧", "e\u0301", "\t", "\n", "[31m", "]0;", "…", "\u202e", "\u200b"})
		s := strings.Join(rapid.SliceOf(word).Draw(t, "words"), "")
		if got := Plain(s); got != s {
			t.Fatalf("%q became %q", s, got)
		}
		colored := strings.ReplaceAll(s, "中", "\x1b[1m中\x1b]8;;x\a\x1b[0m")
		if got := Plain(colored); got != s {
			t.Fatalf("%q became %q", colored, got)
		}
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("10%\r20%\n\x1b[31mred\x1b]0;t\a\x00\xff")
	f.Fuzz(func(t *testing.T, s string) { checkPlain(t, s) })
}

// Inputs that make a scan begin again at every byte take a thousand times as long as a linear one, far past the
// time limit of a test run.
func TestPlainIsLinear(t *testing.T) {
	const n = 1 << 20
	for name, s := range map[string]string{
		"begun strings":      strings.Repeat("\x1bP", n),
		"begun strings, C1":  strings.Repeat("\u0090\n", n),
		"begun commands":     strings.Repeat("\x1b]\n", n),
		"begun CSI":          strings.Repeat("\x1b[;", n),
		"returns":            strings.Repeat("x\r", n),
		"returns, long line": strings.Repeat("x", n) + strings.Repeat("\r", n),
		"erased lines":       strings.Repeat("x", n) + strings.Repeat("\x1b[2K", n) + strings.Repeat("\x1b[1K", n),
		"backspaces":         strings.Repeat("x\b\b", n),
		"moves":              strings.Repeat("x\x1b[1Gy\x1b[9C", n),
	} {
		if got := Plain(s); len(got) > len(s) {
			t.Errorf("%s: %d bytes became %d", name, len(s), len(got))
		}
	}
}
