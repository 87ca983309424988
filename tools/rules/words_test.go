package rules

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pattern is words of a rule, of which a * is a star.
func pattern(text string) commandPattern {
	return strings.Fields(strings.ReplaceAll(text, "*", star))
}

// words are words of a command: ? is an unknown part, @ any number of words, and behind a word that they begin with it.
func words(text string) []word {
	var ws []word
	for _, f := range strings.Fields(text) {
		begin, many := strings.CutSuffix(f, "@")
		w := word{text: strings.ReplaceAll(begin, "?", unknown), many: many, prefixed: many && begin != ""}
		if many {
			w.text += unknown
		}
		ws = append(ws, w)
	}
	return ws
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, words         string
		granted, surely, maybe bool
	}{
		{"git *", "git", true, true, true},
		{"git *", "git a b", true, true, true},
		{"git *", "gita", false, false, false},
		{"git", "git a", false, false, false},
		{"git * push", "git push", true, true, true},
		{"git * push", "git -C x push", true, true, true},
		{"git * push", "git push x", false, false, false},
		{"git * push *", "git push push x", true, true, true},
		{"git a*c", "git abc", true, true, true},
		{"git a*c", "git ac", true, true, true},
		{"git a*c", "git a c", false, false, false},
		{"git push", "git ?", false, false, true},
		{"git push", "git p?", false, false, true},
		{"git push", "git x?", false, false, false},
		{"git push", "git @", false, false, true},
		{"git push", "git push @", false, false, true},
		{"git push", "git x@", false, false, false},
		{"git push", "git pu@", false, false, true},
		{"git *", "git @", true, true, true},
		{"git *", "git ?", true, true, true},
		{"git x*", "git x?", false, true, true},
		{"git x*", "git x@", false, false, true},
		{"* push", "git push", true, true, true},
		{"* push", "? push", false, true, true},
		{"git push", "? push", false, false, true},
		{"git push", "@ push", false, false, true},
		{"git push", "@", false, false, true},
		{"git * push *", "@ x", false, false, true},
		{"git * push", "git@", false, false, false},
		{"git * push", "a@ push", false, false, false},
		{"git push force", "git @ force", false, false, true},
		{"git push force", "git a @ force", false, false, false},
		{"git push", "/usr/bin/git push", true, true, true},
		{"git push", "/tmp/git push", false, true, true},
		{"git push", "./git push", false, true, true},
		{"git push", "Git push", false, true, true},
		{"/usr/bin/git push", "git push", true, true, true},
		{"./x/*.sh", "x/a.sh", true, true, true},
		{"./x/*.sh", "x/../a.sh", false, false, false},
		{"./x/*.sh", "x/y/a.sh", false, true, true},
		{"cat src/*", "cat src/a/b", true, true, true},
		{"cat src/*", "cat src/../a", false, true, true},
		{"cat src/*", "cat src/..a", true, true, true},
		{"cat ../*", "cat ../a", true, true, true},
		{"cat ../*", "cat ../../a", false, true, true},
		{"x --o=*", "x --o=../a", false, true, true},
	} {
		p, ws := pattern(c.pattern), words(c.words)
		for how, want := range map[int]bool{granted: c.granted, surely: c.surely, maybe: c.maybe} {
			if got := p.match(ws, how); got != want {
				t.Errorf("%q on %q, sure %d: %v", c.pattern, c.words, how, got)
			}
		}
	}
}

// TestUnknownPartsAreAnything holds the matching with unknown parts against what it promises, for texts in their place.
func TestUnknownPartsAreAnything(t *testing.T) {
	alphabet := func(extra string) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.SampledFrom([]rune("ab"+extra)), 0, 5, -1)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := alphabet(star).Draw(t, "pattern")
		text := alphabet(unknown).Draw(t, "text")
		filled := ""
		for _, r := range text {
			if string(r) == unknown {
				filled += alphabet("").Draw(t, "filling")
				continue
			}
			filled += string(r)
		}
		is := glob(p, filled)
		if is && !couldBe(p, text) {
			t.Fatalf("%q matches %q, which %q could be", p, filled, text)
		}
		if !is && glob(p, text) {
			t.Fatalf("%q matches %q whatever it is, and not %q", p, text, filled)
		}
	})
}

// TestUnknownWordsAreAnything does the same for words of which there may be any number.
func TestUnknownWordsAreAnything(t *testing.T) {
	some := rapid.SampledFrom([]string{"a", "b", "ab"})
	rapid.Check(t, func(t *rapid.T) {
		p := commandPattern(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", star, "a" + star}), 1, 5).Draw(t, "pattern"))
		var ws, filled []word
		for range rapid.IntRange(1, 5).Draw(t, "words") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				ws = append(ws, anyWords())
				for _, w := range rapid.SliceOfN(some, 0, 3).Draw(t, "any") {
					filled = append(filled, literal(w))
				}
			case 1:
				ws = append(ws, word{text: "a" + unknown, many: true, prefixed: true})
				for range rapid.IntRange(0, 2).Draw(t, "begun") {
					filled = append(filled, literal("a"+some.Draw(t, "end")))
				}
			default:
				w := literal(some.Draw(t, "word"))
				ws, filled = append(ws, w), append(filled, w)
			}
		}
		if len(filled) == 0 {
			return // no command
		}
		is := p.match(filled, surely)
		if is && !p.match(ws, maybe) {
			t.Fatalf("%q matches %q, which %q may be", p, show(filled), show(ws))
		}
		if !is && (p.match(ws, surely) || p.match(ws, granted)) {
			t.Fatalf("%q matches %q whatever it is, and not %q", p, show(ws), show(filled))
		}
	})
}

// TestCouldBeIsNotTooWide holds couldBe against trying all short texts.
func TestCouldBeIsNotTooWide(t *testing.T) {
	var fillings []string
	for _, a := range []string{"", "a", "b"} {
		for _, b := range []string{"", "a", "b"} {
			for _, c := range []string{"", "a", "b"} {
				fillings = append(fillings, a+b+c)
			}
		}
	}
	for _, p := range []string{"", "a", "*", "a*", "*a", "a*b", "ab*a", "aab"} {
		p = strings.ReplaceAll(p, "*", star)
		for _, text := range []string{"?", "a?", "?a", "b?", "a?b", "?b?", "aa?"} {
			text = strings.ReplaceAll(text, "?", unknown)
			some := false
			for _, f := range fillings {
				for _, g := range fillings {
					one := strings.Replace(text, unknown, f, 1)
					some = some || glob(p, strings.Replace(one, unknown, g, 1))
				}
			}
			if got := couldBe(p, text); got != some {
				t.Errorf("%q on %q: %v", p, text, got)
			}
		}
	}
}

func TestPartsAreShownInALine(t *testing.T) {
	ws := []word{literal("echo"), literal("a b"), literal("it's"), {text: "x" + unknown}, literal(strings.Repeat("中", 300))}
	got := show(ws)
	if want := `echo 'a b' 'it'\''s' x… 中`; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "…") || len([]rune(got)) != shownChars {
		t.Errorf("shown as %q", got)
	}
}
