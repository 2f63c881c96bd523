"""The languages of templates."""

from typing import Final

# Source: facts 2.5; upper and lower case matter, and es_CRI and prs_AF are spelled so
LANGUAGES: Final = frozenset(
    """
    af sq ar ar_EG ar_LB ar_MA ar_QA ar_AE ar_SA az be_BY bn bn_IN bg ca zh_CN zh_HK zh_TW hr cs da
    prs_AF nl nl_BE en en_AU en_CA en_GH en_IN en_IE en_JM en_MY en_NZ en_QA en_SG en_AE en_UG en_GB
    en_US en_ZA et fil fi fr fr_BE fr_CA fr_CH fr_CI fr_MA ka de de_AT de_CH el gu ha he hi hu id ga
    it ja kn kk rw_RW ko ky_KG lo lv lt mk ms ml mr nb ps_AF fa pl pt_BR pt_PT pa ro ru sr si_LK sk
    sl es es_AR es_CL es_CO es_CRI es_DO es_EC es_HN es_MX es_PA es_PE es_ES es_UY es_VE sw sv ta te
    th tr uk ur uz vi zu
    """.split()  # noqa: SIM905  a list of a hundred lines is harder to read
)

_LANGUAGE_NAMES: Final[dict[str, str]] = {
    code: name
    for code, _, name in (
        pair.partition(":")
        for pair in """
    af:Afrikaans sq:Albanian ar:Arabic az:Azerbaijani be:Belarusian bn:Bengali bg:Bulgarian ca:Catalan
    zh:Chinese hr:Croatian cs:Czech da:Danish prs:Dari nl:Dutch en:English et:Estonian fil:Filipino
    fi:Finnish fr:French ka:Georgian de:German el:Greek gu:Gujarati ha:Hausa he:Hebrew hi:Hindi
    hu:Hungarian id:Indonesian ga:Irish it:Italian ja:Japanese kn:Kannada kk:Kazakh rw:Kinyarwanda
    ko:Korean ky:Kyrgyz lo:Lao lv:Latvian lt:Lithuanian mk:Macedonian ms:Malay ml:Malayalam mr:Marathi
    nb:Norwegian ps:Pashto fa:Persian pl:Polish pt:Portuguese pa:Punjabi ro:Romanian ru:Russian
    sr:Serbian si:Sinhala sk:Slovak sl:Slovenian es:Spanish sw:Swahili sv:Swedish ta:Tamil te:Telugu
    th:Thai tr:Turkish uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese zu:Zulu
    """.split()  # noqa: SIM905  as above
    )
}


def language_name(code: str) -> str:
    """Return a language's name as the operator's texts use it; the code if it has none.

    Source: facts 2.4, "There is already English content".
    """
    language, _, region = code.partition("_")
    name = _LANGUAGE_NAMES.get(language, code)
    return f"{name} ({region})" if region and name != code else name
