package budget

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"
)

func TestPreview(t *testing.T) {
	family, flag := "👨‍👩‍👧‍👦", "🇩🇪"
	for name, one := range map[string]struct {
		s     string
		limit int
		want  string
	}{
		"empty":               {"", 80, ""},
		"blank":               {" \n\t \r\n", 80, ""},
		"short":               {"done", 80, "done"},
		"exactly the limit":   {strings.Repeat("中", 80), 80, strings.Repeat("中", 80)},
		"one more":            {strings.Repeat("中", 81), 80, strings.Repeat("中", 79) + "…"},
		"folded":              {"  one\n\n\ttwo\u3000 three\r\nfour\u2028five\u0085six ", 80, "one two three four five six"},
		"no blank before cut": {"abc defg", 5, "abc…"},
		"trailing blanks":     {"abcde   \n\n", 5, "abcde"},
		"colours and titles":  {"\x1b[1mred\x1b[0m\x1b]0;evil\a \u009b31mblue", 80, "red blue"},
		"controls":            {"a\x00b\bc\x7fd\u0080e", 80, "abcde"},
		"bidi and zero width": {"a\u202eb\u2066c\u200bd\ufeffe\u200df\u200eg\u00adh", 80, "abcdefgh"},
		"tags and selectors":  {"a\U000e0041\U000e0100\ufe0fb", 80, "ab"},
		"invalid":             {"a\xffb", 80, "a\ufffdb"},
		"emoji stay whole":    {family + " ❤️ 👍🏽 👩🏽‍💻 🏳️‍🌈 " + flag, 80, family + " ❤️ 👍🏽 👩🏽‍💻 🏳️‍🌈 " + flag},
		"emoji fits":          {"ab" + family + "c", 10, "ab" + family + "c"},
		"emoji does not fit":  {"ab" + family + "c", 9, "ab…"},
		"flag does not fit":   {"ab" + flag + "c", 4, "ab…"},
		"marks stay":          {"ae\u0301\u0302x", 4, "a…"},
		"Hangul jamo":         {"a\u1112\u1161\u11abx", 4, "a…"},
		"Arabic number sign":  {"\u0600١", 80, "\u0600١"},
		"one":                 {"ab", 1, "…"},
		"none":                {"ab", 0, ""},
		"less than none":      {"ab", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Preview(one.s, one.limit); got != one.want {
				t.Errorf("got %q, want %q", got, one.want)
			}
		})
	}
}

// checkPreview fails t where a promise of Preview is broken.
func checkPreview(t interface{ Fatalf(string, ...any) }, s string, limit int) {
	got := Preview(s, limit)
	if n := utf8.RuneCountInString(got); n > max(limit, 0) {
		t.Fatalf("%d characters with a limit of %d: %q", n, limit, got)
	}
	if !utf8.ValidString(got) || strings.TrimSpace(got) != got || strings.Contains(got, "  ") {
		t.Fatalf("no plain line: %q", got)
	}
	for _, r := range got {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.IsSpace(r) && r != ' ' || r == '\u200b' || r == '\ufeff' {
			t.Fatalf("holds %U: %q", r, got)
		}
	}
	if limit < 1 {
		return
	}
	whole := Preview(s, len(s)+1)
	if got == whole {
		return
	}
	if utf8.RuneCountInString(whole) <= limit {
		t.Fatalf("cut at %d although it has %d characters: %q", limit, utf8.RuneCountInString(whole), got)
	}
	rest, cut := strings.CutSuffix(got, "…")
	if !cut || !strings.HasPrefix(whole, rest) {
		t.Fatalf("%q is no beginning of %q with …", got, whole)
	}
	for g := graphemes.FromString(whole); g.Next(); {
		if g.Start() < len(rest) && len(rest) < g.End() {
			t.Fatalf("cut inside the grapheme %q: %q", g.Value(), got)
		}
	}
}

func TestPreviewKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkPreview(t, texts().Draw(t, "s"), rapid.IntRange(-1, 120).Draw(t, "limit"))
	})
}

// A preview of a long result costs no more than one of its beginning.
func TestPreviewLooksAtNoMoreThanItShows(t *testing.T) {
	s := strings.Repeat("中文 words ", 1<<20)
	if allocs := testing.AllocsPerRun(5, func() { Preview(s, 500) }); allocs > 20 {
		t.Errorf("%v allocations for a preview", allocs)
	}
}

func FuzzPreview(f *testing.F) {
	f.Add("👨‍👩‍👧‍👦 e\u0301\x1b[31m\u202e text", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) { checkPreview(t, s, limit%1_000) })
}
