"""What a picture's SVG draws and says."""

import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"


def groups(picture, prefix: str) -> dict[str, int]:
    """The SVG's groups whose id begins so, and how many pieces each one's paths have."""
    root = xml.fromstring(picture.svg())
    return {
        name: sum(path.get("d", "").count("M") for path in g.iter(f"{SVG}path"))
        for g in root.iter(f"{SVG}g")
        if (name := g.get("id") or "").startswith(prefix)
    }


def words(picture) -> str:
    return " ".join("".join(t.itertext()) for t in xml.fromstring(picture.svg()).iter(f"{SVG}text"))
