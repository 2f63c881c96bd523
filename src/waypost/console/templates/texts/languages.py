"""English names of the operator's languages, by which the editor finds their codes."""

from collections.abc import Iterator
from typing import Final

from waypost.domain.templates.languages import LANGUAGES, canonical_language

_LANGUAGE_NAMES: Final = {  # Source: domain/templates/languages.py; names as in the Unicode CLDR
    "af": "Afrikaans",
    "ar": "Arabic",
    "az": "Azerbaijani",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fa": "Persian",
    "fi": "Finnish",
    "fil": "Filipino",
    "fr": "French",
    "ga": "Irish",
    "gu": "Gujarati",
    "ha": "Hausa",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "kn": "Kannada",
    "ko": "Korean",
    "ky": "Kyrgyz",
    "lo": "Lao",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "ml": "Malayalam",
    "mr": "Marathi",
    "ms": "Malay",
    "nb": "Norwegian Bokmål",
    "nl": "Dutch",
    "pa": "Punjabi",
    "pl": "Polish",
    "prs": "Dari",
    "ps": "Pashto",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "rw": "Kinyarwanda",
    "si": "Sinhala",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "zh": "Chinese",
    "zu": "Zulu",
}
_REGION_NAMES: Final = {
    "AE": "United Arab Emirates",
    "AF": "Afghanistan",
    "AR": "Argentina",
    "AT": "Austria",
    "AU": "Australia",
    "BE": "Belgium",
    "BR": "Brazil",
    "BY": "Belarus",
    "CA": "Canada",
    "CH": "Switzerland",
    "CI": "Ivory Coast",
    "CL": "Chile",
    "CN": "China",
    "CO": "Colombia",
    "CR": "Costa Rica",
    "CRI": "Costa Rica, the operator's spelling",
    "DO": "Dominican Republic",
    "EC": "Ecuador",
    "EG": "Egypt",
    "ES": "Spain",
    "GB": "United Kingdom",
    "GH": "Ghana",
    "HK": "Hong Kong",
    "HN": "Honduras",
    "IE": "Ireland",
    "IN": "India",
    "JM": "Jamaica",
    "KG": "Kyrgyzstan",
    "LB": "Lebanon",
    "LK": "Sri Lanka",
    "MA": "Morocco",
    "MX": "Mexico",
    "MY": "Malaysia",
    "NZ": "New Zealand",
    "PA": "Panama",
    "PE": "Peru",
    "PT": "Portugal",
    "QA": "Qatar",
    "RW": "Rwanda",
    "SA": "Saudi Arabia",
    "SG": "Singapore",
    "TW": "Taiwan",
    "UG": "Uganda",
    "US": "United States",
    "UY": "Uruguay",
    "VE": "Venezuela",
    "ZA": "South Africa",
}


def language_name(code: str) -> str:
    """Return the name of a language, such as `English (Ireland)`; empty for a code that the operator does not have."""
    if code not in LANGUAGES:
        return ""
    language, _, region = code.partition("_")
    name = _LANGUAGE_NAMES[language]
    return f"{name} ({_REGION_NAMES[region]})" if region else name


def find_language(text: str) -> str:
    """Return the code of a language that was typed as its code or its name, in any case; another text unchanged."""
    return _CODE_BY_NAME.get(" ".join(text.casefold().split())) or canonical_language(text)


def listed_languages() -> Iterator[tuple[str, str]]:
    """Yield the code and the name of each language, in the order of the names."""
    return iter(sorted(((code, language_name(code)) for code in LANGUAGES), key=lambda pair: pair[1]))


_CODE_BY_NAME: Final = {language_name(code).casefold(): code for code in LANGUAGES}
