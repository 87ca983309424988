package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Restore applies a patch of Changes, told of the same commit, to a fresh private tree: the files are then as they were
// when it was told. All of the patch or nothing is applied.
func (t *Tree) Restore(ctx context.Context, patch io.Reader) error {
	if t.base == nil || !t.base.fresh {
		return fmt.Errorf("restore %q: %w", t.Dir, errors.New("not a private tree of a checkout"))
	}
	t.base.mu.Lock()
	defer t.base.mu.Unlock()
	if err := t.base.g.run(ctx, patch, nil, "apply", "--whitespace=nowarn", "-"); err != nil {
		return fmt.Errorf("restore %q: %w", t.Dir, err)
	}
	return nil
}
