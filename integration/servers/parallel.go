package servers

import (
	"flag"
	"fmt"
	"strconv"
)

// Parallel lets n tests of this program run at once, unless -parallel says how many. It is for a
// TestMain: tests that have servers wait for replies most of the time.
func Parallel(n int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(fmt.Sprintf("the flag of package testing: %v", err))
	}
}
