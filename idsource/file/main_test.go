package file

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// childEnv turns the test binary into a process that issues ids until it is killed: "segment" or
// "snowflake", and whether it moves the source past other ids: "", "+advance", or "+forget", which
// only says it does. With "tuning" it issues the steps that it tunes a series to.
const childEnv = "IDSOURCE_FILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		if err := issue(kind, os.Getenv(childEnv+"_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// issue writes every id it gets to standard output, eight bytes each.
func issue(kind, dir string) error {
	st, err := New(Config{Dir: dir})
	if err != nil {
		return err
	}
	if kind == "tuning" {
		return tuneOn(st)
	}
	var src idsource.Series
	kind, advance, _ := strings.Cut(kind, "+")
	if kind == "segment" {
		src, err = segment.New(segment.Config{Name: "order_id", Store: st, Step: 20, MaxStep: 40})
	} else {
		src, err = snowflake.New(snowflake.Config{Name: "event_id", Fences: st, Worker: 7, Renew: 20 * time.Millisecond})
	}
	if err != nil {
		return err
	}
	ids := make([]uint64, 3, 4)
	for {
		if err := src.Fill(context.Background(), ids, 1); err != nil {
			return err
		}
		var out []byte
		more := ids
		if advance != "" {
			other := ids[2] + 1 + ids[2]%70
			more = append(ids, other)
			if advance == "advance" {
				if err := src.Advance(context.Background(), other); err != nil {
					return err
				}
			}
		}
		for _, id := range more {
			out = binary.BigEndian.AppendUint64(out, id)
		}
		if _, err := os.Stdout.Write(out); err != nil {
			return err
		}
	}
}

// tuneOn tunes a series to greater and greater steps.
func tuneOn(st *Store) error {
	ctx := context.Background()
	if err := st.Advance(ctx, "k", 1); err != nil {
		return err
	}
	to, err := st.Tuning(ctx, "k")
	for err == nil {
		to.Step++
		if err = st.Tune(ctx, "k", to); err == nil {
			_, err = os.Stdout.Write(binary.BigEndian.AppendUint64(nil, to.Step))
		}
	}
	return err
}
