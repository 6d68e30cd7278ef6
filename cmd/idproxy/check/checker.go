package check

import (
	"time"

	"idproxy/config"
)

// patience is how long servers are waited for.
type patience struct {
	first time.Duration // for the first answer of a server
	all   time.Duration // for all answers of a server, which is left where it is then
}

var onlinePatience = patience{first: 5 * time.Second, all: 30 * time.Second}

// checker asks servers and stores. It changes nothing in them.
type checker struct {
	cfg      *config.Config
	patience patience
}
