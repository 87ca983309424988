package budget

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Caps is every limit on what tools read, keep and show, on children, and on calls that repeat themselves. Zero is a valid value of few of them: take
// Default() or Compact() and change it.
//
// The tag `cap` holds, in this order, the default, the value in the preset "compact", the least and the greatest value;
// the name of another cap, which stands before it, in place of the greatest means that this one may not be above that one.
type Caps struct {
	OutputChars    int `json:"output_chars" cap:"20000 20000 1000 200000" doc:"characters of any tool's final text, errors and notice included"`
	ReadAdmitBytes int `json:"read_admit_bytes" cap:"4194304 4194304 65536 67108864" doc:"bytes of a file that is read whole"`
	ReadLines      int `json:"read_lines" cap:"2000 500 1 20000" doc:"lines of one read_file"`
	ReadLineChars  int `json:"read_line_chars" cap:"2000 500 80 20000" doc:"characters of one line of read_file"`
	GrepMatches    int `json:"grep_matches" cap:"200 50 1 2000" doc:"matches that grep shows"`
	GrepFileBytes  int `json:"grep_file_bytes" cap:"1048576 1048576 65536 67108864" doc:"bytes of a file that grep still searches"`
	GrepLineChars  int `json:"grep_line_chars" cap:"240 240 80 2000" doc:"characters of one line of grep"`
	WalkFiles      int `json:"walk_files" cap:"500000 500000 1000 5000000" doc:"files that grep and glob walk over"`
	WalkSecs       int `json:"walk_secs" cap:"20 20 1 120" doc:"seconds that grep and glob walk"`
	GlobFiles      int `json:"glob_files" cap:"500 200 1 5000" doc:"files that glob shows"`
	ListEntries    int `json:"list_entries" cap:"300 100 10 5000" doc:"entries that list_dir shows"`
	CommandBytes   int `json:"command_bytes" cap:"262144 262144 16384 16777216" doc:"bytes kept of each stream of a command"`
	TaskBytes      int `json:"task_bytes" cap:"524288 524288 16384 16777216" doc:"bytes kept of each stream of a background task"`
	CommandChars   int `json:"command_chars" cap:"8000 5000 500 100000" doc:"characters shown of each stream of a command"`
	CommandHead    int `json:"command_head" cap:"20 0 0 90" doc:"percent of them that is taken from the start of the stream"`
	GitBytes       int `json:"git_bytes" cap:"262144 262144 16384 16777216" doc:"bytes kept of what git prints"`
	LogCount       int `json:"log_count" cap:"20 10 1 200" doc:"commits that git_log shows"`
	TimeoutSecs    int `json:"timeout_secs" cap:"120 120 1 3600" doc:"seconds that a command may run"`
	FetchBytes     int `json:"fetch_bytes" cap:"2097152 2097152 65536 33554432" doc:"bytes of a fetched page, after decompression"`
	FetchChars     int `json:"fetch_chars" cap:"20000 5000 500 output_chars" doc:"characters shown of a fetched page"`
	SearchResults  int `json:"search_results" cap:"5 5 1 10" doc:"results of a web search"`
	SnippetChars   int `json:"snippet_chars" cap:"400 200 80 2000" doc:"characters of one search result"`
	SkillChars     int `json:"skill_chars" cap:"20000 8000 1000 100000" doc:"characters of a skill"`
	SkillListChars int `json:"skill_list_chars" cap:"6000 2500 500 100000" doc:"characters of the list of skills in the system prompt"`
	DocsChars      int `json:"docs_chars" cap:"20000 8000 1000 100000" doc:"characters of all AGENTS.md files"`
	TodoItems      int `json:"todo_items" cap:"50 50 1 200" doc:"items of a todo list"`
	PreviewChars   int `json:"preview_chars" cap:"500 500 80 500" doc:"characters of a result's preview on the board"`
	MemoryChars    int `json:"memory_chars" cap:"1000 1000 80 10000" doc:"characters of one memory"`
	MemoryHits     int `json:"memory_hits" cap:"10 10 1 100" doc:"memories that one search shows"`
	MemoryItems    int `json:"memory_items" cap:"1000 1000 10 10000" doc:"memories of one project"`
	MemoryBytes    int `json:"memory_bytes" cap:"1048576 1048576 65536 16777216" doc:"bytes of all memories of one project"`
	ChildRows      int `json:"child_rows" cap:"20 10 1 200" doc:"children that agent_list shows"`
	ChildrenLive   int `json:"children_live" cap:"20 20 1 10000" doc:"children of one agent at a time"`
	ChildrenTotal  int `json:"children_total" cap:"100 100 1 100000" doc:"children of one agent in all"`
	Depth          int `json:"depth" cap:"3 3 0 10" doc:"levels of agents under a run's root"`
	RepeatStop     int `json:"repeat_stop" cap:"5 5 2 1000" doc:"same calls with the same result in a row until the job ends as stuck"`
	RepeatHint     int `json:"repeat_hint" cap:"3 3 2 repeat_stop" doc:"same calls with the same result in a row until an agent is told"`
}

// Cap is one row of the table: what a cap is called, means, is by default and may be.
type Cap struct {
	Name         string // as in a plan, a profile or --caps
	Doc          string
	Default      int
	Compact      int
	Min, Max     int
	NotAbove     string // the cap that this one may not be above, "" for none; Max is then that one's Max
	field, above int    // index of the field in Caps and of NotAbove's, -1 for none
}

// Table lists every cap in the order of Caps.
func Table() []Cap { return append([]Cap(nil), table()...) }

// Default returns the preset "default".
func Default() Caps { return preset(func(r Cap) int { return r.Default }) }

// Compact returns the preset "compact": for small models and long runs, where every row of output is paid again in
// each later turn.
func Compact() Caps { return preset(func(r Cap) int { return r.Compact }) }

func preset(value func(Cap) int) Caps {
	var c Caps
	for _, r := range table() {
		*c.at(r.field) = value(r)
	}
	return c
}

// at returns the field at index i of the struct. Every field of Caps is an int.
func (c *Caps) at(i int) *int {
	return reflect.ValueOf(c).Elem().Field(i).Addr().Interface().(*int)
}

// table reads the tags of Caps once.
var table = sync.OnceValue(func() []Cap {
	t := reflect.TypeFor[Caps]()
	rows := make([]Cap, t.NumField())
	byName := make(map[string]int, len(rows))
	for i := range rows {
		byName[t.Field(i).Tag.Get("json")] = i
	}
	for i := range rows {
		tag := t.Field(i).Tag
		r := Cap{Name: tag.Get("json"), Doc: tag.Get("doc"), field: i, above: -1}
		words := strings.Fields(tag.Get("cap"))
		for j, to := range []*int{&r.Default, &r.Compact, &r.Min} {
			*to = number(r.Name, words[j])
		}
		if other, isCap := byName[words[3]]; isCap {
			r.NotAbove, r.above, r.Max = words[3], other, rows[other].Max
		} else {
			r.Max = number(r.Name, words[3])
		}
		rows[i] = r
	}
	return rows
})

// number reads a word of a `cap` tag. The tags are constants of this package: a bad one is a bug that any use shows.
func number(name, word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(fmt.Sprintf("budget: tag of cap %s: %v", name, err))
	}
	return n
}
