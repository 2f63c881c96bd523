"""The Flow JSON with which a new Flow begins: two screens that the operator accepts."""

from typing import Final

NEW_FLOW_JSON: Final = """{
  "version": "7.3",
  "screens": [
    {
      "id": "DETAILS",
      "title": "Your details",
      "data": {},
      "layout": {
        "type": "SingleColumnLayout",
        "children": [
          {
            "type": "TextHeading",
            "text": "How can we reach you?"
          },
          {
            "type": "TextInput",
            "name": "name",
            "label": "Name",
            "required": true
          },
          {
            "type": "Footer",
            "label": "Continue",
            "on-click-action": {
              "name": "navigate",
              "next": { "type": "screen", "name": "CONFIRM" },
              "payload": { "name": "${form.name}" }
            }
          }
        ]
      }
    },
    {
      "id": "CONFIRM",
      "title": "Confirm",
      "terminal": true,
      "success": true,
      "data": {
        "name": { "type": "string", "__example__": "Ann" }
      },
      "layout": {
        "type": "SingleColumnLayout",
        "children": [
          {
            "type": "TextBody",
            "text": "`'Thank you, ' ${data.name} '.'`"
          },
          {
            "type": "OptIn",
            "name": "news",
            "label": "Send me news"
          },
          {
            "type": "Footer",
            "label": "Send",
            "on-click-action": {
              "name": "complete",
              "payload": { "name": "${data.name}", "news": "${form.news}" }
            }
          }
        ]
      }
    }
  ]
}
"""
