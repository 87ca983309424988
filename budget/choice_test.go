package budget

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestParseChoice(t *testing.T) {
	for in, want := range map[string]Choice{
		"":                                    {},
		"preset=compact":                      {Preset: "compact"},
		"grep_matches=3":                      {Numbers: map[string]int{"grep_matches": 3}},
		" preset = compact , grep_matches=7,": {Preset: "compact", Numbers: map[string]int{"grep_matches": 7}},
		"command_head=0,depth=0":              {Numbers: map[string]int{"command_head": 0, "depth": 0}},
	} {
		got, err := ParseChoice(in)
		if err != nil {
			t.Errorf("ParseChoice(%q): %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseChoice(%q) (-want +got):\n%s", in, diff)
		}
	}
}

func TestBadChoicesNameCapRangeAndValue(t *testing.T) {
	for in, words := range map[string][]string{
		"grep_matches=0":                       {"grep_matches", "is 0", "1 to 2000"},
		"grep_matches=2001":                    {"grep_matches", "is 2001", "1 to 2000"},
		"grep_matches=many":                    {"grep_matches", `"many"`, "1 to 2000"},
		"grep_matches=1.5":                     {"grep_matches", `"1.5"`, "whole number"},
		"grep_matches=-9223372036854775809":    {"grep_matches", "1 to 2000"},
		"grep_matches=1,grep_matches=1":        {"grep_matches", "twice"},
		"preset=compact,preset=compact":        {"preset", "twice"},
		"preset=huge":                          {`"huge"`, "default and compact"},
		"grep_match=1":                         {`"grep_match"`, "unknown", "grep_matches"},
		"compact":                              {`"compact"`, "preset=compact"},
		"=3":                                   {`"=3"`, "name=number"},
		"fetch_chars=20001":                    {"fetch_chars", "is 20001", "500 to output_chars (20000)"},
		"output_chars=4000,fetch_chars=5000":   {"fetch_chars", "is 5000", "output_chars (4000)"},
		"output_chars=999":                     {"output_chars", "is 999", "1000 to 200000"},
		"preview_chars=501":                    {"preview_chars", "is 501", "80 to 500"},
		"preset=compact,command_head=91":       {"command_head", "is 91", "0 to 90"},
		"output_chars=200000,fetch_chars=9e99": {"fetch_chars", "9e99"},
	} {
		_, err := ParseChoice(in)
		if err == nil {
			t.Errorf("ParseChoice(%q) took it", in)
			continue
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("ParseChoice(%q): %q does not say %q", in, err, word)
			}
		}
	}
}

func TestFetchCharsFollowOutputCharsDown(t *testing.T) {
	caps, err := Choice{Numbers: map[string]int{"output_chars": 4_000}}.Caps()
	if err != nil || caps.FetchChars != 4_000 {
		t.Errorf("fetch_chars is %d (%v), want 4000 under output_chars 4000", caps.FetchChars, err)
	}
	caps, err = Choice{Numbers: map[string]int{"output_chars": 200_000, "fetch_chars": 150_000}}.Caps()
	if err != nil || caps.FetchChars != 150_000 {
		t.Errorf("fetch_chars is %d (%v), want 150000 under output_chars 200000", caps.FetchChars, err)
	}
}

func TestOver(t *testing.T) {
	below := Choice{Preset: "compact", Numbers: map[string]int{"depth": 1, "log_count": 2}}
	above := Choice{Numbers: map[string]int{"log_count": 3, "glob_files": 4}}
	want := Choice{Preset: "compact", Numbers: map[string]int{"depth": 1, "log_count": 3, "glob_files": 4}}
	if diff := cmp.Diff(want, above.Over(below)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Choice{Preset: "default"}).Over(below).Preset; got != "default" {
		t.Errorf("preset is %q, want the upper one's", got)
	}
	if below.Numbers["log_count"] != 2 || len(above.Numbers) != 2 {
		t.Error("Over changed what it was given")
	}
	if !(Choice{}).Over(Choice{}).IsZero() {
		t.Error("nothing over nothing says something")
	}
}

func TestChoiceJSON(t *testing.T) {
	c := Choice{Preset: "compact", Numbers: map[string]int{"grep_matches": 100, "depth": 0}}
	encoded, err := json.Marshal(c)
	if want := `{"preset":"compact","depth":0,"grep_matches":100}`; err != nil || string(encoded) != want {
		t.Errorf("Marshal gives %s (%v), want %s", encoded, err, want)
	}
	type holder struct {
		Caps Choice `json:"caps,omitzero"`
	}
	if encoded, _ := json.Marshal(holder{Caps: Choice{Numbers: map[string]int{}}}); string(encoded) != "{}" {
		t.Errorf("a choice that says nothing is written as %s", encoded)
	}
	for _, bad := range []string{`[]`, `"compact"`, `{"preset":1}`, `{"depth":"1"}`, `{"depth":1.5}`, `{"depth":null}`, `{"depth":{}}`} {
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("Unmarshal took %s", bad)
		}
	}
	if err := json.Unmarshal([]byte(`{"some_later_cap": 5}`), &c); err != nil {
		t.Errorf("a record of another version cannot be read: %v", err)
	}
	if _, err := c.Caps(); err == nil {
		t.Error("Caps took an unknown cap")
	}
}

func TestChoiceYAML(t *testing.T) {
	var plan struct{ Caps Choice }
	if err := yaml.Unmarshal([]byte("base: &b {depth: 2}\ncaps: {<<: *b, preset: compact, grep_matches: 100}\n"), &plan); err != nil {
		t.Fatal(err)
	}
	want := Choice{Preset: "compact", Numbers: map[string]int{"grep_matches": 100, "depth": 2}}
	if diff := cmp.Diff(want, plan.Caps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for in, words := range map[string][]string{
		"caps:\n  depth: 1\n  grep_matches: 5000\n":         {"line 3", "grep_matches is 5000", "1 to 2000"},
		"caps:\n  depht: 1\n":                               {"line 2", `"depht"`, "unknown"},
		"caps: compact\n":                                   {"line 1", "mapping"},
		"caps:\n  depth: [1]\n":                             {"line 2", "depth"},
		"caps:\n  output_chars: 4000\n  fetch_chars: 5000":  {"line 2", "fetch_chars is 5000", "4000"},
		"caps:\n  depth: 1\n  depth: 1\n":                   {"line 2"},
		"caps:\n  preset: [compact]\n":                      {"line 2", "preset", "single value"},
		"caps:\n  preset: tiny\n":                           {"line 2", `"tiny"`},
		"caps:\n  output_chars: 8000\n  fetch_chars: 8001 ": {"fetch_chars is 8001", "8000"},
	} {
		err := yaml.Unmarshal([]byte(in), &plan)
		if err == nil {
			t.Errorf("took %q", in)
			continue
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q: %q does not say %q", in, err, word)
			}
		}
	}
}

// choices generates choices that Caps takes.
func choices() *rapid.Generator[Choice] {
	return rapid.Custom(func(t *rapid.T) Choice {
		c := Choice{Preset: rapid.SampledFrom([]string{"", "default", "compact"}).Draw(t, "preset")}
		for _, r := range Table() {
			if r.NotAbove == "" && rapid.Bool().Draw(t, r.Name+" chosen") {
				if c.Numbers == nil {
					c.Numbers = make(map[string]int)
				}
				c.Numbers[r.Name] = rapid.IntRange(r.Min, r.Max).Draw(t, r.Name)
			}
		}
		return c
	})
}

func TestChoiceSurvivesEveryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := choices().Draw(t, "choice")
		encoded, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var fromJSON, fromYAML Choice
		if err := json.Unmarshal(encoded, &fromJSON); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(encoded, &fromYAML); err != nil { // JSON is YAML
			t.Fatal(err)
		}
		var parts []string
		if c.Preset != "" {
			parts = append(parts, "preset="+c.Preset)
		}
		for name, n := range c.Numbers {
			parts = append(parts, fmt.Sprintf("%s=%d", name, n))
		}
		fromFlag, err := ParseChoice(strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		for form, got := range map[string]Choice{"JSON": fromJSON, "YAML": fromYAML, "flag": fromFlag} {
			if diff := cmp.Diff(c, got); diff != "" {
				t.Fatalf("through %s (-want +got):\n%s", form, diff)
			}
		}
	})
}

func FuzzChoice(f *testing.F) {
	f.Add("preset=compact,grep_matches=100")
	f.Add("output_chars=1000,fetch_chars=1000")
	f.Add(`{"preset":"compact","depth":1}`)
	f.Fuzz(func(t *testing.T, s string) {
		check := func(c Choice, err error) {
			if err != nil {
				return
			}
			caps, err := c.Caps()
			if err != nil {
				return
			}
			for _, r := range table() {
				if n := *caps.at(r.field); n < r.Min || n > r.Max || r.above >= 0 && n > *caps.at(r.above) {
					t.Errorf("%q was taken with %s %d", s, r.Name, n)
				}
			}
		}
		check(ParseChoice(s))
		var c Choice
		check(c, json.Unmarshal([]byte(s), &c))
		if json.Unmarshal([]byte(s), &c) == nil {
			check(c, nil)
		}
	})
}
