package budget

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNotice(t *testing.T) {
	c := Cut{What: "stdout", Unit: "characters", Shown: 8_000, Total: 40_000}
	for _, one := range []struct {
		got, want string
	}{
		{c.Notice("read out.txt"), "[… showing 8000 of 40000 characters of stdout, 32000 left out; read out.txt]"},
		{c.Notice(""), "[… showing 8000 of 40000 characters of stdout, 32000 left out]"},
		{Cut{Unit: "lines", Total: 3}.Notice("x"), "[… showing 0 of 3 lines, 3 left out; x]"},
	} {
		if one.got != one.want {
			t.Errorf("got %s\nwant %s", one.got, one.want)
		}
	}
}

func TestClip(t *testing.T) {
	lines := strings.Repeat("0123456789\n", 1_000)
	for name, one := range map[string]struct {
		s           string
		limit, head int
		want        string
	}{
		"exactly the limit":     {strings.Repeat("中", 500), 500, 20, strings.Repeat("中", 500)},
		"empty":                 {"", 0, 20, ""},
		"tail only":             {lines, 120, 0, "[… showing 44 of 11000 characters of log, 10956 left out; grep it]\n" + lines[:44]},
		"head only":             {lines, 120, 100, lines[:44] + "[… showing 44 of 11000 characters of log, 10956 left out; grep it]"},
		"no room for what":      {strings.Repeat("z", 300), 84, 100, strings.Repeat("z", 26) + "\n[… showing 26 of 300 characters, 274 left out; grep it]"},
		"no room for rest":      {strings.Repeat("z", 300), 70, 0, "[… showing 21 of 300 characters, 279 left out]\n" + strings.Repeat("z", 21)},
		"numbers and no words":  {strings.Repeat("z", 300), 20, 0, "[…8/300]\n" + strings.Repeat("z", 8)},
		"an ellipsis":           {strings.Repeat("z", 300), 3, 0, "…"},
		"an ellipsis and a bit": {strings.Repeat("z", 300), 8, 50, "zz\n…\nzzz"},
		"nothing":               {strings.Repeat("z", 300), 0, 0, ""},
		"less than nothing":     {strings.Repeat("z", 300), -5, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, cut := Clip(one.s, one.limit, one.head, "log", "grep it")
			if got != one.want {
				t.Errorf("got %q\nwant %q", got, one.want)
			}
			if (cut == nil) != (got == one.s) {
				t.Errorf("cut is %+v", cut)
			}
		})
	}
}

func TestClipTakesWholeLinesWhereTheyAreNear(t *testing.T) {
	s := strings.Repeat("one line of some words\n", 1_000)
	got, cut := Clip(s, 2_000, 40, "log", "")
	for line := range strings.Lines(got) {
		if line != "one line of some words\n" && !strings.HasPrefix(line, "[…") {
			t.Errorf("cut inside a line: %q", line)
		}
	}
	if cut == nil || Chars(got) < 1_800 {
		t.Errorf("%d characters of 2000 used, cut %+v", Chars(got), cut)
	}
}

// texts generates what tools meet: words, CJK, emoji of several code points, lone marks, control characters, escape
// sequences, bytes that are no UTF-8.
func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "word ", "\n", "\r\n", "\r", "中", "日本語\n", "é", "e\u0301", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "❤️",
		"\u0301", "\u200d", "\u200b", "\u202e", "\ufeff", "\x00", "\b", "\x1b[31m", "\x1b[2K", "\x1b]0;t\a", "\x1b]8;;x\x1b\\", "\x1bP", "\x1b", "\x7f",
		"\u0085", "\u009b", "\u009c", "\xff", "\xe4\xb8", "\xf0\x9f", "\x80", "…", "[… showing 1 of 2 characters", "\t", "\u2028", "\U000e0041"})
	return rapid.Custom(func(t *rapid.T) string {
		repeat := rapid.IntRange(1, 40).Draw(t, "repeat")
		return strings.Repeat(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""), repeat)
	})
}

var noticeNumbers = regexp.MustCompile(`\[… showing (\d+) of (\d+) characters(?: of it)?, (\d+) left out(?:; get it)?\]|\[…(\d+)/(\d+)\]`)

// checkClip fails t where a promise of Clip is broken: the limit, the numbers, the place of the cut, nothing lost in silence.
func checkClip(t interface{ Fatalf(string, ...any) }, s string, limit, head int) {
	got, cut := Clip(s, limit, head, "it", "get it")
	total := Chars(s)
	if cut == nil {
		if got != s || total > max(limit, 0) {
			t.Fatalf("limit %d: %d characters became %d without a cut", limit, total, Chars(got))
		}
		return
	}
	if total <= limit {
		t.Fatalf("limit %d: cut although there are %d characters", limit, total)
	}
	if Chars(got) > max(limit, 0) {
		t.Fatalf("limit %d: %d characters", limit, Chars(got))
	}
	if cut.Total != int64(total) || cut.Unit != "characters" || cut.What != "it" {
		t.Fatalf("cut is %+v, want a total of %d characters of it", cut, total)
	}
	if limit < 40 {
		return
	}
	at := noticeNumbers.FindAllStringSubmatchIndex(got, -1)
	for _, m := range at {
		before, after := got[:m[0]], got[m[1]:]
		for _, head := range []string{before, strings.TrimSuffix(before, "\n")} {
			tail := strings.TrimPrefix(after, "\n")
			if strings.HasPrefix(s, head) && strings.HasSuffix(s, tail) && int64(Chars(head)+Chars(tail)) == cut.Shown && noticeSays(got, m, cut) {
				return
			}
		}
	}
	t.Fatalf("limit %d, head %d: no place in the output is a head of the input, an exact notice of %+v and a tail:\n%q", limit, head, cut, got)
}

func noticeSays(s string, m []int, cut *Cut) bool {
	number := func(group int) int64 {
		n, _ := strconv.ParseInt(s[m[2*group]:m[2*group+1]], 10, 64)
		return n
	}
	if m[2] < 0 {
		return number(4) == cut.Shown && number(5) == cut.Total
	}
	return number(1) == cut.Shown && number(2) == cut.Total && number(3) == cut.Total-cut.Shown
}

func TestClipKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkClip(t, texts().Draw(t, "s"), rapid.IntRange(-1, 700).Draw(t, "limit"), rapid.IntRange(-5, 120).Draw(t, "head"))
	})
}

// Where the number of shown characters gains or loses a digit, the notice changes its own length.
func TestClipAroundEveryDigit(t *testing.T) {
	for limit := range 1_300 {
		s := strings.Repeat("中", limit+1)
		got, cut := Clip(s, limit, 50, "", "")
		if cut == nil || Chars(got) > limit {
			t.Fatalf("limit %d: %d characters, cut %+v", limit, Chars(got), cut)
		}
		if limit > 100 && Chars(got) < limit-8 {
			t.Errorf("limit %d: only %d characters are used", limit, Chars(got))
		}
	}
}

// A cut that counted anew at every character would run into the time limit of the tests.
func TestClipOfMegabytes(t *testing.T) {
	s := strings.Repeat("中文\xff", 4<<20)
	got, cut := Clip(s, 20_000, 20, "it", "get it")
	if n := Chars(got); n > 20_000 || cut == nil || cut.Total != 12<<20 {
		t.Errorf("%d characters, cut %+v", n, cut)
	}
}

func TestUnits_are_what_the_notice_says(t *testing.T) {
	t.Run("units_are_what_the_notice_says", func(t *testing.T) {
		for name, letter := range map[string]string{"CJK": "中", "emoji": "👍", "family": "👨‍👩‍👧", "ASCII": "x", "invalid": "\xff"} {
			s := strings.Repeat(letter, 30_000)
			got, cut := Clip(s, 20_000, 20, "stdout", "read it")
			if n := utf8.RuneCountInString(got); n > 20_000 || n < 19_900 {
				t.Errorf("%s: %d code points shown with a cap of 20000", name, n)
			}
			want := fmt.Sprintf("showing %d of %d characters of stdout", cut.Shown, utf8.RuneCountInString(s))
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in the notice", name, want)
			}
			head, tail, _ := strings.Cut(got, "\n[… ")
			_, tail, _ = strings.Cut(tail, "]\n")
			if n := utf8.RuneCountInString(head) + utf8.RuneCountInString(tail); int64(n) != cut.Shown {
				t.Errorf("%s: the notice says %d, shown are %d", name, cut.Shown, n)
			}
			if name != "invalid" && !utf8.ValidString(got) {
				t.Errorf("%s: cut inside a code point", name)
			}
		}
	})
}

func FuzzClip(f *testing.F) {
	f.Add("some text\nof lines\n", 10, 20)
	f.Add(strings.Repeat("中\xff", 400), 300, 50)
	f.Fuzz(func(t *testing.T, s string, limit, head int) { checkClip(t, s, limit, head) })
}
