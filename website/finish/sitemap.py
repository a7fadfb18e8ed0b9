"""List the pages for search engines, where the address of the site is known."""

from website.finish.site import Site

START = '<?xml version="1.0" encoding="UTF-8"?>\n'
URLS = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>\n'


def write(site: Site) -> None:
    """Write sitemap.xml."""
    if address := site.app.config.html_baseurl:
        pages = sorted(site.app.env.found_docs)
        urls = "".join(f"<url><loc>{address}{page}.html</loc></url>" for page in pages)
        (site.folder / "sitemap.xml").write_text(START + URLS.format(urls), encoding="utf-8")
