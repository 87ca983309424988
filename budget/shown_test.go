package budget

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestShown(t *testing.T) {
	family, flag := "👨‍👩‍👧‍👦", "🇩🇪"
	for in, want := range map[string]string{
		"":                             "",
		"plain\ttext\n中文 👍\n":          "plain\ttext\n中文 👍\n",
		"\x1b[1mred\x1b[0m\x1b]0;x\ay": "redy",
		"a\u009b31mb\u0085c":           "abc",
		"safe\rEVIL":                   "EVIL",
		"a\u202eb\u2066c\u061cd\u200ee\u200ff\u202c": "abcdef",
		"a\u200bb\ufeffc\u2060d\u00ade\u180ef":       "abcdef",
		"pass\u200dword, pass\u200cword":             "password, password",
		"a\U000e0041\U000e007fb\U000e0100c\ufe00d":   "abcd",
		"one\u2028two\u2029three":                    "one\ntwo\nthree",
		"\u3164a\u115fb\u034fc\uffa0d":               "abcd",
		"a\ufff9b\ufffac":                            "abc",
		"bad \xff\xfe utf8\x00":                      "bad \ufffd\ufffd utf8␀",
		family + " ❤️ 1️⃣ 👩🏽‍💻 " + flag:              family + " ❤️ 1️⃣ 👩🏽‍💻 " + flag,
		"می\u200cخواهم ක්\u200dෂ":                    "می\u200cخواهم ක්\u200dෂ",
		"x\ufe0f 1\ufe0f2":                           "x 12",
		"\u0600١":                                    "\u0600١",
	} {
		if got := Shown(in); got != want {
			t.Errorf("Shown(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestShownKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.OneOf(texts(), rapid.SampledFrom([]string{
			"\u202e", "\u200d", "\u200c", "\ufe0f", "1", "⃣", "👩", "\U000e0041", "\u2028", "م", "\u3164", "\u009b", "\r", "\x1b",
		}))).Draw(t, "parts"), "")
		got := Shown(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Shown(%q) is invalid UTF-8: %q", s, got)
		}
		for _, r := range got {
			switch {
			case r == joiner || r == nonJoiner || r == emojiStyle: // where they make a picture
			case Hidden(r), separates(r), unicode.Is(unicode.Bidi_Control, r):
				t.Fatalf("Shown(%q) holds %U: %q", s, r, got)
			}
		}
		if again := Shown(got); again != got {
			t.Fatalf("twice: %q became %q", got, again)
		}
	})
}

func FuzzShown(f *testing.F) {
	f.Add("1️⃣ a\u202e \U000e0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Shown(s); Shown(got) != got || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
