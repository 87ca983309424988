package tools

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyExpression draws regular expressions that are valid, and now and then one that is not.
func anyExpression() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{"a", "b", "k", "K", "é", "ſ", "ab", "foo", ".", `\w`, `\d`, `\s`, `\S`, `\W`, "[a-c]", "[^a]", "[^é]", `\pL`, "^", "$", `\b`, `\B`,
		`\A`, `\z`, `\.`, "x*", "(?i:k)", "(?i:foo)", "(?:)", `[\x00-\x{10ffff}]`, "\ufffd", `(?s:.)`, `(?m:^)`, "日", `\n`})
	var deep func(level int) *rapid.Generator[string]
	deep = func(level int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if level == 0 {
				return atom.Draw(t, "atom")
			}
			inner := deep(level - 1)
			switch rapid.IntRange(0, 7).Draw(t, "shape") {
			case 0, 1:
				return inner.Draw(t, "left") + inner.Draw(t, "right")
			case 2:
				return "(" + inner.Draw(t, "left") + "|" + inner.Draw(t, "right") + ")"
			case 3:
				return "(?:" + inner.Draw(t, "inner") + ")" + rapid.SampledFrom([]string{"*", "+", "?", "*?", "{2}", "{0,3}"}).Draw(t, "times")
			case 4:
				return "(" + inner.Draw(t, "inner") + ")"
			}
			return inner.Draw(t, "inner")
		})
	}
	return deep(4)
}

var lineText = rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "k", "K", "s", "ſ", "\u212a", "é", "É", "foo", "FoO", "ab", "x", "_", "1", " ", ".", "\t", "\r",
	"\xff", "\xc3", "\ufffd", "日本", "😀", "\x00", "\x1b[1m"})), func(parts []string) string { return strings.Join(parts, "") })

// What the automaton answers is what package regexp answers.
func TestLineDFAIsRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := anyExpression().Draw(t, "expression")
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			t.Skip("no expression")
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Skip("no program")
		}
		expr := regexp.MustCompile(source)
		dfa := newLineDFA(prog)
		for _, line := range rapid.SliceOfN(lineText, 1, 10).Draw(t, "lines") {
			if line == "" {
				continue // no line at all, for the automaton
			}
			at, ok := dfa.find([]byte(line), 0)
			got := at == 0
			if want := expr.MatchString(line); !ok || got != want {
				t.Fatalf("%q on %q: automaton %v (of use: %v), regexp %v", source, line, got, ok, want)
			}
		}
	})
}

// An automaton that would have too many states gives up within its bounds, and the answer stays right.
func TestLineDFAGivesUp(t *testing.T) {
	plan, err := compileSearch("(a|b)*a(a|b){18}c", true, false)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	seed := uint32(1)
	for range 1 << 19 {
		seed = seed*1664525 + 1013904223
		text.WriteByte("ab"[seed>>31])
	}
	f := plan.finder()
	begun := time.Now()
	if f.matches([]byte(text.String())) {
		t.Error("matched without a c")
	}
	if !f.matches([]byte(text.String()[:1<<10] + "a" + strings.Repeat("b", 18) + "c")) {
		t.Error("no match with the c")
	}
	if !f.dfa.useless {
		t.Error("the automaton did not give up; the case is too small to test it")
	}
	if f.dfa.cells > 2*dfaCells {
		t.Errorf("the automaton holds %d cells, bound %d", f.dfa.cells, dfaCells)
	}
	if d := time.Since(begun); d > patience {
		t.Errorf("took %v", d)
	}
}

// Whatever finds it, a plan finds the lines that package regexp matches, line by line.
func TestSearchPlanFindsTheSameLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isRegex := rapid.Bool().Draw(t, "regex")
		ignoreCase := rapid.Bool().Draw(t, "ignore case")
		var pattern, source string
		if isRegex {
			pattern = anyExpression().Draw(t, "expression")
			source = pattern
		} else {
			pattern = strings.TrimRight(strings.ToValidUTF8(lineText.Draw(t, "text"), "."), "\r")
			pattern = strings.ReplaceAll(pattern, "\ufffd", ".") // regexp finds it in invalid bytes, where it is not
			source = regexp.QuoteMeta(pattern)
		}
		if pattern == "" {
			t.Skip("nothing to look for")
		}
		if ignoreCase {
			source = "(?i)" + source
		}
		expr, err := regexp.Compile(source)
		plan, perr := compileSearch(pattern, isRegex, ignoreCase)
		if (err == nil) != (perr == nil) {
			t.Fatalf("regexp says %v, the plan %v", err, perr)
		}
		if err != nil {
			t.Skip("no expression")
		}
		lines := rapid.SliceOf(lineText).Draw(t, "lines")
		data := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		var want, got []int
		at := 0
		for line := range strings.SplitAfterSeq(data, "\n") {
			text := strings.TrimSuffix(line, "\n")
			if text != line {
				text = strings.TrimSuffix(text, "\r")
			}
			if line != "" && expr.MatchString(text) {
				want = append(want, at)
			}
			at += len(line)
		}
		f := plan.finder()
		for at := 0; ; {
			hit := f.next([]byte(data), at)
			if hit < 0 {
				break
			}
			start, end, next := lineAt([]byte(data), hit)
			got = append(got, start)
			from, to := plan.span(data[start:end])
			if m := expr.FindStringIndex(data[start:end]); m == nil || !isRegex && (m[0] != from || m[1] != to) {
				t.Fatalf("span %d to %d of %q, regexp says %v", from, to, data[start:end], m)
			}
			at = next
		}
		if len(got) != len(want) || int64(len(got)) != f.count([]byte(data)) {
			t.Fatalf("found lines at %v, counted %d, want %v", got, f.count([]byte(data)), want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("found lines at %v, want %v", got, want)
			}
		}
	})
}

func TestRequiredTexts(t *testing.T) {
	for source, want := range map[string][]mustHold{
		"foo":                        {{"foo", false}},
		"fo+bar":                     {{"bar", false}},
		"(?i)foo":                    {{"FOO", true}},
		"a(bc|de)fgh?":               {{"bc", false}, {"de", false}},
		"(abc)+d":                    {{"abc", false}},
		"(abc){2,}":                  {{"abc", false}},
		"(abc)*xy":                   {{"xy", false}},
		"(abc)?":                     nil,
		"TODO|FIXME|(?i:xxx)":        {{"TODO", false}, {"FIXME", false}, {"XXX", true}},
		"foo|b?":                     nil,
		"\ufffdfoo":                  nil,
		`func \w+\(t \*T\)`:          {{"(t *T)", false}},
		"ab|bc|cd|de|ef|fg|gh|hi|ij": nil,
	} {
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		got := requiredTexts(tree)
		for i := range got {
			if got[i].fold {
				got[i].text = strings.ToUpper(got[i].text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: every match holds one of %v, want %v", source, got, want)
		}
	}
}

// Where most lines hold what a match must and do not match, it is no longer looked for; what is found stays the same.
func TestSearchPlanNoticesDenseTexts(t *testing.T) {
	plan, err := compileSearch("return [0-9]+;", true, false)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Repeat("return x;\n", 5000) + "return 17;\n" + strings.Repeat("return y;\n", 5000))
	f := plan.finder()
	if n := f.count(data); n != 1 || !f.dense() {
		t.Errorf("counted %d, dense %v; want 1, true", n, f.dense())
	}
	if n := f.count(data); n != 1 {
		t.Errorf("counted %d after that, want 1", n)
	}
}

// A case that never comes must not cost a look at the whole file for every match.
func TestFoldFinderIsLinear(t *testing.T) {
	data := bytes.Repeat([]byte("once UPON a time\n"), 1<<16)
	plan, err := compileSearch("upon", false, true)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if n := plan.finder().count(data); n != 1<<16 {
		t.Errorf("counted %d of %d", n, 1<<16)
	}
	if d := time.Since(begun); d > patience {
		t.Errorf("took %v for one megabyte", d)
	}
}

func FuzzSearchPlan(f *testing.F) {
	f.Add("fo+|b", "foo\nbar\r\n", true, true)
	f.Add("K", "\u212a\nk", false, true)
	f.Fuzz(func(t *testing.T, pattern, data string, isRegex, ignoreCase bool) {
		if pattern == "" || strings.Contains(pattern, "\n") || len(pattern) > 100 || len(data) > 1000 {
			return
		}
		plan, err := compileSearch(pattern, isRegex, ignoreCase)
		if err != nil {
			return
		}
		finder := plan.finder()
		n := int64(0)
		for at := 0; ; n++ {
			hit := finder.next([]byte(data), at)
			if hit < 0 {
				break
			}
			start, _, next := lineAt([]byte(data), hit)
			if start < at || next <= at {
				t.Fatalf("went back: from %d to the line %d to %d", at, start, next)
			}
			at = next
		}
		if counted := finder.count([]byte(data)); counted != n {
			t.Errorf("found %d lines, counted %d", n, counted)
		}
	})
}
