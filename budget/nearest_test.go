package budget

import (
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	tools := []string{"read_file", "write_file", "edit_file", "list_dir", "task_list", "agent_list", "todo_write"}
	for _, c := range []struct {
		want   string
		most   int
		all    []string
		likely []string
	}{
		{"readfile", 1, []string{"read_file"}, []string{"read_file"}},
		{"READ_FILE", 1, []string{"read_file"}, []string{"read_file"}},
		{"list", 3, []string{"agent_list", "list_dir", "task_list"}, []string{"agent_list", "list_dir", "task_list"}},
		{"wrte_file", 1, []string{"write_file"}, []string{"write_file"}},
		{"bash", 1, []string{"edit_file"}, nil},
		{"", 0, nil, nil},
	} {
		if got := Nearest(c.want, tools, c.most); c.want != "bash" && !slices.Equal(got, c.all) || len(got) != c.most {
			t.Errorf("Nearest(%q) = %q, want %q", c.want, got, c.all)
		}
		if got := Likely(c.want, tools, c.most); !slices.Equal(got, c.likely) {
			t.Errorf("Likely(%q) = %q, want %q", c.want, got, c.likely)
		}
	}
}

// TestDistance holds what makes it a distance.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcä中")), 0, 12, -1)
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		d := func(a, b string) int { return distance([]rune(a), []rune(b)) }
		if d(a, b) != d(b, a) || (d(a, b) == 0) != (a == b) || d(a, c) > d(a, b)+d(b, c) {
			t.Fatalf("%q %q %q: %d %d %d", a, b, c, d(a, b), d(b, c), d(a, c))
		}
		if most := max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)); d(a, b) > most {
			t.Fatalf("%q %q: %d", a, b, d(a, b))
		}
	})
}
