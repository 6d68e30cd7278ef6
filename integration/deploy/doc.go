// Package deploy is what the Dockerfile and the compose file say, and the demonstration behind
// `make run`. Package compose has an engine run them.
package deploy
