package budget

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The numbers of the tool contract, written a second time on purpose: a changed default is a changed promise.
var contract = map[string][4]int{ // default, compact, least, greatest
	"output_chars":     {20_000, 20_000, 1_000, 200_000},
	"read_admit_bytes": {4 << 20, 4 << 20, 64 << 10, 64 << 20},
	"read_lines":       {2_000, 500, 1, 20_000},
	"read_line_chars":  {2_000, 500, 80, 20_000},
	"grep_matches":     {200, 50, 1, 2_000},
	"grep_file_bytes":  {1 << 20, 1 << 20, 64 << 10, 64 << 20},
	"grep_line_chars":  {240, 240, 80, 2_000},
	"walk_files":       {500_000, 500_000, 1_000, 5_000_000},
	"walk_secs":        {20, 20, 1, 120},
	"glob_files":       {500, 200, 1, 5_000},
	"list_entries":     {300, 100, 10, 5_000},
	"command_bytes":    {256 << 10, 256 << 10, 16 << 10, 16 << 20},
	"task_bytes":       {512 << 10, 512 << 10, 16 << 10, 16 << 20},
	"command_chars":    {8_000, 5_000, 500, 100_000},
	"command_head":     {20, 0, 0, 90},
	"git_bytes":        {256 << 10, 256 << 10, 16 << 10, 16 << 20},
	"log_count":        {20, 10, 1, 200},
	"timeout_secs":     {120, 120, 1, 3_600},
	"fetch_bytes":      {2 << 20, 2 << 20, 64 << 10, 32 << 20},
	"fetch_chars":      {20_000, 5_000, 500, 200_000},
	"search_results":   {5, 5, 1, 10},
	"snippet_chars":    {400, 200, 80, 2_000},
	"skill_chars":      {20_000, 8_000, 1_000, 100_000},
	"skill_list_chars": {6_000, 2_500, 500, 100_000},
	"docs_chars":       {20_000, 8_000, 1_000, 100_000},
	"todo_items":       {50, 50, 1, 200},
	"preview_chars":    {500, 500, 80, 500},
	"memory_chars":     {1_000, 1_000, 80, 10_000},
	"memory_hits":      {10, 10, 1, 100},
	"memory_items":     {1_000, 1_000, 10, 10_000},
	"memory_bytes":     {1 << 20, 1 << 20, 64 << 10, 16 << 20},
	"child_rows":       {20, 10, 1, 200},
	"children_live":    {20, 20, 1, 10_000},
	"children_total":   {100, 100, 1, 100_000},
	"depth":            {3, 3, 0, 10},
	"repeat_hint":      {3, 3, 2, 1_000},
	"repeat_stop":      {5, 5, 2, 1_000},
}

func TestTableIsTheContract(t *testing.T) {
	got := make(map[string][4]int)
	for _, r := range Table() {
		got[r.Name] = [4]int{r.Default, r.Compact, r.Min, r.Max}
		if r.Doc == "" {
			t.Errorf("%s has no doc", r.Name)
		}
	}
	if diff := cmp.Diff(contract, got); diff != "" {
		t.Errorf("table differs from the contract (-want +got):\n%s", diff)
	}
}

func TestPresetsHaveTheTablesNumbers(t *testing.T) {
	for name, of := range map[string]struct {
		caps Caps
		i    int
	}{"default": {Default(), 0}, "compact": {Compact(), 1}} {
		encoded, err := json.Marshal(of.caps)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]int
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		want := make(map[string]int)
		for cap, numbers := range contract {
			want[cap] = numbers[of.i]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTableIsACopy(t *testing.T) {
	Table()[0].Default = 1
	if got := Default().OutputChars; got != 20_000 {
		t.Errorf("a caller changed the table: output_chars is %d by default", got)
	}
}

func TestEveryFieldOfCapsIsACap(t *testing.T) {
	for f := range reflect.TypeFor[Caps]().Fields() {
		if _, listed := contract[f.Tag.Get("json")]; !listed || f.Type.Kind() != reflect.Int {
			t.Errorf("field %s (%s) is no int, or not in the contract", f.Name, f.Type)
		}
	}
}

func TestPresetsAreWithinRange(t *testing.T) {
	for _, r := range Table() {
		for _, n := range []int{r.Default, r.Compact} {
			if n < r.Min || n > r.Max {
				t.Errorf("%s: %d is not in %d to %d", r.Name, n, r.Min, r.Max)
			}
		}
	}
}
