// Package site builds the site of all pages and looks for links in it that lead nowhere.
package site
