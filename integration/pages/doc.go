// Package pages tries what the pages for users show: configurations, commands, and the quick start.
package pages
