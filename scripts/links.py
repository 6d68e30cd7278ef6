#!/usr/bin/env python3
"""Looks at links.

    links.py linked PAGES REPOSITORY   prints the files that Markdown pages link to and that are not beside them
    links.py dead HTML                 fails when a link in a site leads to no file of it, or to no place in a file
"""
import html.parser
import os
import re
import sys
import urllib.parse


def files(root, end):
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(end):
                yield os.path.join(folder, name)


def linked(pages, repository):
    found = set()
    for page in files(pages, ".md"):
        folder = os.path.dirname(os.path.relpath(page, pages))
        for link in re.findall(r"\]\(([^)\s#]+)", open(page, encoding="utf-8").read()):
            path = os.path.normpath(os.path.join(folder, link))
            if "://" not in link and not path.startswith("..") and os.path.isfile(os.path.join(repository, path)):
                found.add(path)
    print("\n".join(sorted(p for p in found if not os.path.exists(os.path.join(pages, p)))))


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(open(path, encoding="utf-8").read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names |= {attributes[k] for k in ("id", "name") if attributes.get(k)}
        self.links += [attributes[k] for k in ("href", "src") if attributes.get(k)]


def dead(site):
    pages = {os.path.normpath(p): Page(p) for p in files(site, ".html")}
    looked, lost = 0, []
    for path, page in pages.items():
        if os.path.basename(path) == "404.html":  # its links begin at the site's root
            continue
        for link in page.links:
            to = urllib.parse.urlparse(link)
            if to.scheme or to.netloc:
                continue
            looked += 1
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(to.path))) if to.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            place = urllib.parse.unquote(to.fragment)
            if not os.path.isfile(target):
                lost.append(f"{path}: {link}: no such file")
            elif place and target in pages and place not in pages[target].names and not place.startswith("__"):
                lost.append(f"{path}: {link}: no such place")
    print("\n".join(lost))
    print(f"docs: {len(pages)} pages, {looked} links, {len(lost)} lead nowhere")
    return 1 if lost or looked < 1000 else 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "linked":
        linked(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3 and sys.argv[1] == "dead":
        sys.exit(dead(sys.argv[2]))
    else:
        sys.exit(__doc__)
