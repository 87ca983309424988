package workspace

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// Bounds of an index; Linux has 90,000 entries, the largest known repositories some million.
const (
	indexEntries   = 5_000_000
	indexNameBytes = 512 << 20
	indexPathBytes = 1 << 16
)

// trackedNames are the paths in a git index, in its order (by bytes). Nil holds none.
type trackedNames struct {
	text string
	ends []uint32 // where each name ends in text
}

func (n *trackedNames) name(i int) string {
	start := uint32(0)
	if i > 0 {
		start = n.ends[i-1]
	}
	return n.text[start:n.ends[i]]
}

// from returns the first name that is not before path.
func (n *trackedNames) from(path string) (string, bool) {
	if n == nil {
		return "", false
	}
	i := sort.Search(len(n.ends), func(i int) bool { return n.name(i) >= path })
	if i == len(n.ends) {
		return "", false
	}
	return n.name(i), true
}

func (n *trackedNames) has(path string) bool {
	name, ok := n.from(path)
	return ok && name == path
}

// under tells whether a file is tracked below a folder, given with the slash at its end.
func (n *trackedNames) under(folder string) bool {
	name, ok := n.from(folder)
	return ok && strings.HasPrefix(name, folder)
}

// trackedNames reads the index of the repository whose folder is at the tree's root. It returns nil where there is none or it cannot be read:
// then ignore rules alone decide.
func (t *Tree) trackedNames() *trackedNames {
	read := func(path string, hashSize int) (*index, error) {
		f, err := t.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readIndex(f, hashSize)
	}
	const sha1, sha256 = 20, 32
	for _, hashSize := range []int{sha1, sha256} {
		idx, err := read(".git/index", hashSize)
		if err != nil {
			continue
		}
		if idx.shared == "" {
			return idx.names()
		}
		base, err := read(".git/sharedindex."+idx.shared, hashSize)
		if err != nil {
			return idx.names()
		}
		// A split index also lists what it removes of the shared one: too many names only show a file more.
		idx.paths = append(idx.paths, base.paths...)
		sort.Strings(idx.paths)
		return idx.names()
	}
	return nil
}

// index is what is read of a git index file.
type index struct {
	paths  []string
	shared string // hash of the shared index that this one is split from
}

func (x *index) names() *trackedNames {
	n := &trackedNames{ends: make([]uint32, 0, len(x.paths))}
	size := 0
	for _, p := range x.paths {
		size += len(p)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range x.paths {
		b.WriteString(p)
		n.ends = append(n.ends, uint32(b.Len()))
	}
	n.text = b.String()
	return n
}

var errIndex = errors.New("not a git index")

// readIndex reads the names of an index file of version 2, 3 or 4, whose object names have hashSize bytes.
func readIndex(r io.Reader, hashSize int) (*index, error) {
	in := &indexReader{r: bufio.NewReaderSize(r, 64<<10), fixed: make([]byte, 40+hashSize+2)}
	var head [12]byte
	if _, err := io.ReadFull(in.r, head[:]); err != nil {
		return nil, err
	}
	count := binary.BigEndian.Uint32(head[8:])
	in.version = binary.BigEndian.Uint32(head[4:])
	if string(head[:4]) != "DIRC" || in.version < 2 || in.version > 4 {
		return nil, errIndex
	}
	if count > indexEntries {
		return nil, fmt.Errorf("git index of %d entries is over the limit of %d", count, indexEntries)
	}
	x := &index{}
	total := 0
	for range count {
		name, err := in.entry()
		if err != nil {
			return nil, err
		}
		if total += len(name); total > indexNameBytes {
			return nil, fmt.Errorf("git index: names are over the limit of %d bytes", indexNameBytes)
		}
		if n := len(x.paths); name == "" || n > 0 && x.paths[n-1] == name {
			continue // an entry of a split index, or another stage of a conflict
		}
		x.paths = append(x.paths, name)
	}
	if !sort.StringsAreSorted(x.paths) {
		return nil, errIndex // read with the wrong size of hash
	}
	x.shared = in.link(hashSize)
	return x, nil
}

// indexReader reads entry after entry.
type indexReader struct {
	r       *bufio.Reader
	version uint32
	fixed   []byte
	prev    string
}

// Bits of an entry's flags.
const (
	flagExtended = 0x4000
	flagLength   = 0x0fff
)

func (in *indexReader) entry() (string, error) {
	if _, err := io.ReadFull(in.r, in.fixed); err != nil {
		return "", err
	}
	flags := binary.BigEndian.Uint16(in.fixed[len(in.fixed)-2:])
	size := len(in.fixed)
	if flags&flagExtended != 0 {
		if in.version < 3 {
			return "", errIndex
		}
		if _, err := in.r.Discard(2); err != nil {
			return "", err
		}
		size += 2
	}
	if in.version == 4 {
		return in.compressed()
	}
	name, err := in.text()
	if err != nil {
		return "", err
	}
	if want := int(flags & flagLength); want != flagLength && want != len(name) {
		return "", errIndex
	}
	// One to eight NULs fill the entry up to a multiple of eight; text has taken the first.
	_, err = in.r.Discard(7 - (size+len(name))%8)
	return name, err
}

// text reads up to a NUL.
func (in *indexReader) text() (string, error) {
	var name []byte
	for {
		part, err := in.r.ReadSlice(0)
		if len(name)+len(part) > indexPathBytes {
			return "", errIndex
		}
		name = append(name, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return "", err
		}
		return string(name[:len(name)-1]), nil
	}
}

// compressed reads a name of version 4: how much of the name before goes from its end, then what follows instead.
func (in *indexReader) compressed() (string, error) {
	b, err := in.r.ReadByte()
	if err != nil {
		return "", err
	}
	strip := int(b & 0x7f)
	for b&0x80 != 0 {
		if b, err = in.r.ReadByte(); err != nil {
			return "", err
		}
		if strip = (strip+1)<<7 | int(b&0x7f); strip > indexPathBytes {
			return "", errIndex
		}
	}
	if strip > len(in.prev) {
		return "", errIndex
	}
	suffix, err := in.text()
	if err != nil {
		return "", err
	}
	if in.prev = in.prev[:len(in.prev)-strip] + suffix; len(in.prev) > indexPathBytes {
		return "", errIndex
	}
	return in.prev, nil
}

// link looks through the extensions for the shared index that this one is split from.
func (in *indexReader) link(hashSize int) string {
	for {
		var head [8]byte
		if _, err := io.ReadFull(in.r, head[:]); err != nil {
			return ""
		}
		size := binary.BigEndian.Uint32(head[4:])
		if string(head[:4]) == "link" && size >= uint32(hashSize) {
			hash := make([]byte, hashSize)
			if _, err := io.ReadFull(in.r, hash); err != nil {
				return ""
			}
			return hex.EncodeToString(hash)
		}
		if _, err := io.CopyN(io.Discard, in.r, int64(size)); err != nil {
			return ""
		}
	}
}
