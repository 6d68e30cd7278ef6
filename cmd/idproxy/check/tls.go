package check

import (
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
)

// certificateSoon is how long before the end of a certificate check says so.
const certificateSoon = 14 * 24 * time.Hour

// tlsNotes says what TLS does not protect from, and which certificates end.
func tlsNotes(cfg *config.Config, now time.Time) []Finding {
	var n notes
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		if l.Unverified() {
			n.add(l.Pos, LevelWarning, "listener %s: it does not verify the certificate of %s: somebody on the way can be the server; name the CA in upstream_tls.ca", l.Name, l.Behind())
		}
		if l.UpstreamTLS.Mode == config.TLSPreferred && l.UpstreamTLS.CA != "" {
			n.add(l.Pos, LevelWarning, "listener %s: upstream_tls.mode is preferred: who takes the offer of TLS out of what %s says first gets by without a certificate of upstream_tls.ca; set upstream_tls.mode to required", l.Name, l.Behind())
		}
		if l.TLS != nil && l.TLS.ClientCA != "" && l.TLS.Mode == config.TLSOptional && l.Listen.Network == "tcp" {
			n.add(l.Pos, LevelWarning, "listener %s: tls.client_ca asks clients for certificates, and lets those without TLS in, who show none; set tls.mode to required", l.Name)
		}
	}
	all, err := tlsconfig.Certificates(cfg)
	if err != nil {
		n.add(config.Pos{File: cfg.Path, Line: 1, Column: 1}, LevelError, "%v", err)
	}
	for _, c := range all {
		n.end(cfg, c, now)
	}
	return n.findings
}

// end says of a certificate that ends soon that it does.
func (n *notes) end(cfg *config.Config, c tlsconfig.Certificate, now time.Time) {
	level, word := LevelWarning, "ends"
	switch {
	case now.After(c.Ends):
		level, word = LevelError, "has ended"
	case c.Ends.Sub(now) >= certificateSoon:
		return
	}
	n.add(config.Pos{File: cfg.Path, Line: 1, Column: 1}, level, "%s: the certificate in %s %s on %s: renew it", c.Name, c.File, word, c.Ends.UTC().Format(time.DateTime))
}
