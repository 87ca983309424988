package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// limit is one of Limits.
type limit struct {
	name  string
	of    int64
	bytes bool
}

func (l limit) String() string {
	switch {
	case l.of < 0:
		return "no limit"
	case l.bytes:
		return Bytes(l.of).String()
	}
	return strconv.FormatInt(l.of, 10)
}

// rows lists the limits; limitsOf is the way back.
func (l Limits) rows() []limit {
	return []limit{
		{"processes", int64(l.Processes), false}, {"memory", int64(l.Memory), true}, {"cpu_secs", int64(l.CPUSecs), false},
		{"file", int64(l.File), true}, {"open_files", int64(l.OpenFiles), false}, {"tmp", int64(l.Tmp), true},
		{"disk", int64(l.Disk), true}, {"disk_files", l.DiskFiles, false},
	}
}

func limitsOf(rows []limit) Limits {
	return Limits{
		Processes: int(rows[0].of), Memory: Bytes(rows[1].of), CPUSecs: int(rows[2].of), File: Bytes(rows[3].of),
		OpenFiles: int(rows[4].of), Tmp: Bytes(rows[5].of), Disk: Bytes(rows[6].of), DiskFiles: rows[7].of,
	}
}

// Bytes is a size. In YAML it is a number, or a number with a unit: 512MiB, 4GiB, 1.5GB.
type Bytes int64

var units = []struct {
	name string
	of   float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// ParseBytes reads a size as YAML has it.
func ParseBytes(text string) (Bytes, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if cut, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(cut), u.of
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if n *= factor; err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<62 {
		return 0, fmt.Errorf("%q is no size: write a number of bytes, or one with a unit such as 512MiB or 4GiB", text)
	}
	return Bytes(n), nil
}

// String is the size in the largest unit that shows it exactly.
func (b Bytes) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; b != 0 && b%Bytes(u.of) == 0 {
			return strconv.FormatInt(int64(b)/int64(u.of), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: want a size such as 4GiB", n.Line)}}
	}
	v, err := ParseBytes(n.Value)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", n.Line, err)}}
	}
	*b = v
	return nil
}
