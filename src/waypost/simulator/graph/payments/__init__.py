"""Graph API calls for payments.

Source: the operator's pages "Payments onboarding APIs" and "Receive payments via payment gateways on WhatsApp".
"""
