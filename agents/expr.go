package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ref is one expression of a plan.
type ref struct {
	kind string // item, items, index, results
	id   string // of results: the job
}

// envPrefix begins the environment variables that expressions become in a command. A plan cannot set such variables.
const envPrefix = "MUSTER_"

var (
	expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{\{(.*?)\}\}`) })
	resultsOf  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^results\.([A-Za-z0-9_-]+)$`) })
	notEnv     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Z0-9_]`) })
)

// parseRef reads what stands between ${{ and }}.
func parseRef(inner string) (ref, error) {
	s := strings.TrimSpace(inner)
	switch s {
	case "item", "items", "index":
		return ref{kind: s}, nil
	}
	if m := resultsOf().FindStringSubmatch(s); m != nil {
		return ref{kind: "results", id: m[1]}, nil
	}
	return ref{}, fmt.Errorf("unknown expression ${{%s}}: there are item, items, index and results.ID", inner)
}

// env is the environment variable that stands for the expression in a command.
func (r ref) env() string {
	if r.kind == "results" {
		return envPrefix + "RESULT_" + envID(r.id)
	}
	return envPrefix + strings.ToUpper(r.kind)
}

func envID(id string) string { return notEnv().ReplaceAllString(strings.ToUpper(id), "_") }

// refs lists the expressions of a text; the error is of the first bad one.
func refs(text string) ([]ref, error) {
	var all []ref
	for _, m := range expression().FindAllStringSubmatch(text, -1) {
		r, err := parseRef(m[1])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if rest := expression().ReplaceAllString(text, ""); strings.Contains(rest, "${{") {
		return nil, fmt.Errorf("an expression is not closed: ${{ without }}")
	}
	return all, nil
}

// fill replaces the expressions of a text that value knows; the others stay.
func fill(text string, value func(ref) (string, bool)) string {
	return expression().ReplaceAllStringFunc(text, func(whole string) string {
		r, err := parseRef(expression().FindStringSubmatch(whole)[1])
		if err != nil {
			return whole
		}
		if v, ok := value(r); ok {
			return v
		}
		return whole
	})
}

// place says where in a step's arguments a text stands.
type place struct {
	tool string
	key  string // of the nearest object around it
	top  bool   // that object is the arguments themselves
}

// shell says that a shell will evaluate the text.
func (p place) shell() bool { return p.tool == "run_command" && p.top && p.key == "command" }

// mapTexts replaces every text value in the arguments of a step.
func mapTexts(tool string, args json.RawMessage, fn func(p place, s string) (string, error)) (json.RawMessage, error) {
	return mapTextsAt(args, place{tool: tool}, 0, fn)
}

func mapTextsAt(raw json.RawMessage, p place, depth int, fn func(p place, s string) (string, error)) (json.RawMessage, error) {
	if len(raw) == 0 {
		return raw, nil
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("read argument: %w", err)
		}
		s, err := fn(p, s)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("read arguments: %w", err)
		}
		for i, v := range list {
			v, err := mapTextsAt(v, place{p.tool, p.key, false}, depth+1, fn)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return json.Marshal(list)
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("read arguments: %w", err)
		}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			v, err := mapTextsAt(object[k], place{p.tool, k, depth == 0}, depth+1, fn)
			if err != nil {
				return nil, err
			}
			object[k] = v
		}
		return json.Marshal(object)
	}
	return raw, nil
}
