//go:build faultinject

package segment

import "idproxy/idsource/faults"

// beginOff is the negative control of tests with several shards.
var beginOff = faults.NoBegin()
