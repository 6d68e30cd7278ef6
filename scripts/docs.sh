#!/usr/bin/env bash
# Builds the site of all pages in .site/html, with mkdocs-material, and looks for links in it that lead nowhere.
#
#   scripts/docs.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-servers.sh site

rm -rf .site
mkdir -p .site/pages
# Pages, and all that one of them links to in the repository.
git ls-files -z -- '*.md' '*.svg' '*.png' ':!*/testdata/*' | xargs -0 cp --parents -t .site/pages
scripts/links.py linked .site/pages . | xargs -r cp --parents -t .site/pages
mv .site/pages/README.md .site/pages/index.md
find .site/pages -name '*.md' -exec sed -i -E 's,\]\(((\.\./)*)README\.md,](\1index.md,g' {} +
mkdocs build --quiet --strict
scripts/links.py dead .site/html
echo "docs: .site/html/index.html"
