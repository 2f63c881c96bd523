"""The languages of templates, in the operator's spelling."""

from typing import Final

# Source: operator's facts 2.5, with `ar_SA` and `es_VE` that a client has too; facts 3.9. The union of both
# lists: `es_CRI` is the operator's own spelling, `es_CR` is in facts 3.9 only.
LANGUAGES: Final = (
    "af", "sq", "ar", "ar_EG", "ar_LB", "ar_MA", "ar_QA", "ar_AE", "ar_SA", "az", "be_BY", "bn", "bn_IN", "bg",
    "ca", "zh_CN", "zh_HK", "zh_TW", "hr", "cs", "da", "prs_AF", "nl", "nl_BE", "en", "en_AU", "en_CA", "en_GH",
    "en_IN", "en_IE", "en_JM", "en_MY", "en_NZ", "en_QA", "en_SG", "en_AE", "en_UG", "en_GB", "en_US", "en_ZA",
    "et", "fil", "fi", "fr", "fr_BE", "fr_CA", "fr_CH", "fr_CI", "fr_MA", "ka", "de", "de_AT", "de_CH", "el",
    "gu", "ha", "he", "hi", "hu", "id", "ga", "it", "ja", "kn", "kk", "rw_RW", "ko", "ky_KG", "lo", "lv", "lt",
    "mk", "ms", "ml", "mr", "nb", "ps_AF", "fa", "pl", "pt_BR", "pt_PT", "pa", "ro", "ru", "sr", "si_LK", "sk",
    "sl", "es", "es_AR", "es_CL", "es_CO", "es_CR", "es_CRI", "es_DO", "es_EC", "es_HN", "es_MX", "es_PA",
    "es_PE", "es_ES", "es_UY", "es_VE", "sw", "sv", "ta", "te", "th", "tr", "uk", "ur", "uz", "vi", "zu",
)  # fmt: skip

_CANONICAL_CODES: Final = {code.lower(): code for code in LANGUAGES}


def canonical_language(code: str) -> str:
    """Return a language code in the operator's spelling, whatever its case; an unknown one unchanged.

    Source: facts 3.9: one client writes `pt_br`.
    """
    return _CANONICAL_CODES.get(code.strip().lower(), code)
