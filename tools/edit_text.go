package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"

	"muster/tools/workspace"
)

// textFile is a file that is to be changed as text: what it holds now, and what that says.
type textFile struct {
	path string // as it was given
	name string // for messages
	data []byte
	sum  [sha256.Size]byte
	perm fs.FileMode
	read bool // this agent has read it as it is
	enc  encoding
	text string // without its byte order mark
}

// openKnown reads a file of at most ReadAdmitBytes. What this agent has read and what has changed since is a conflict: the rest of the file may no longer
// be what it thinks. What it has not read is none, since an edit proves by its old text that the agent knows the place.
func (c *Call) openKnown(ctx context.Context, path string) (*textFile, error) {
	f := &textFile{path: path, name: shownName(shorten(relName(c, path), 200))}
	if err := f.load(ctx, c); err != nil {
		return nil, err
	}
	f.sum = sha256.Sum256(f.data)
	known, read := c.set.reads.known(c.Tree, path)
	if read && known != f.sum {
		return nil, fail(Conflict, "%s changed since you read it; read_file it again, then edit", f.name)
	}
	f.read = read
	return f, nil
}

func (f *textFile) load(ctx context.Context, c *Call) error {
	r, size, err := openText(c, f.path)
	if err != nil {
		return err
	}
	defer r.Close()
	if info, err := r.Stat(); err == nil {
		f.perm = info.Mode().Perm()
	}
	most := int64(c.Caps.ReadAdmitBytes)
	var b bytes.Buffer
	if size <= most {
		b.Grow(int(size) + bytes.MinRead)
		if _, err := b.ReadFrom(io.LimitReader(&counted{r: r, h: sha256.New(), ctx: ctx}, most+1)); err != nil {
			return fmt.Errorf("read %s: %w", f.path, err)
		}
		size = max(size, int64(b.Len()))
	}
	if size > most {
		return fail(Input, "%s has %d bytes, an edit takes at most %d; change it with a command such as sed", f.name, size, most)
	}
	f.data = b.Bytes()
	return nil
}

// decode makes text of the file; a binary file, or one that would come out as other bytes, is refused.
func (f *textFile) decode() error {
	enc, kind := sniff(f.data[:min(len(f.data), sniffBytes)])
	if kind != "" {
		return fail(Input, "%s is binary (%s, %d bytes); it cannot be edited as text", f.name, kind, len(f.data))
	}
	text, exact := enc.decode(f.data)
	if !exact {
		return fail(Permanent, "%s is not valid %s; an edit would damage it", f.name, enc)
	}
	f.enc, f.text = enc, text
	return nil
}

// put replaces what was opened, unless it has changed meanwhile.
func (f *textFile) put(ctx context.Context, c *Call, text string) (workspace.Written, error) {
	data := f.enc.encode(text)
	w, err := c.Tree.Commit(ctx, []workspace.Step{{Deed: workspace.Put, Path: f.path, Data: data, Was: &f.sum}})
	if err != nil {
		return workspace.Written{}, err
	}
	if f.read {
		c.set.reads.remember(c.Tree, f.path, sha256.Sum256(data))
	}
	return w[0], nil
}
