// Package deploy is the Dockerfile, the compose file and the demonstration behind `make run`.
package deploy
