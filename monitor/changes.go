package monitor

import "net/http"

// changing guards what changes something: that takes a token, or a unix socket.
func (s *Server) changing(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Token == "" && !local(r) {
			problem(w, http.StatusForbidden, "this takes a token or the unix socket, and admin has no token: give it socket: unix:/run/idproxy/admin.sock, for commands on this host, or a token, which commands with --admin take from IDPROXY_ADMIN_TOKEN; then restart idproxy")
			return
		}
		next(w, r)
	}
}

// drain has the program let its sessions go. It answers at once.
func (s *Server) drain(w http.ResponseWriter, r *http.Request) {
	s.Logger.Info("drain asked for by the admin listener", "client.address", r.RemoteAddr)
	s.Program.Drain()
	w.WriteHeader(http.StatusNoContent)
}

// Reloaded is what came of a reload, or would come.
type Reloaded struct {
	Changes []string `json:"changes"` // in the words of the file's keys
}

// reload answers once the file is in force, or why it is not.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	s.Logger.Info("reload asked for by the admin listener", "client.address", r.RemoteAddr)
	changes, err := s.Program.Reload()
	if err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	answer(w, http.StatusOK, Reloaded{changes})
}

// preview answers what a reload would change. It asks stores for it.
func (s *Server) preview(w http.ResponseWriter, _ *http.Request) {
	changes, err := s.Program.Preview()
	if err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	answer(w, http.StatusOK, Reloaded{changes})
}

// upgrade answers once a successor serves, or why none does.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	s.Logger.Info("upgrade asked for by the admin listener", "client.address", r.RemoteAddr)
	if err := s.Program.Upgrade(); err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) resume(w http.ResponseWriter, _ *http.Request) {
	if err := s.Program.Resume(); err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
