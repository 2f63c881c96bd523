/** An error response of the control API; its message is the API's own text. */
export class ControlError extends Error {
  status: number;
  body: Record<string, string>;
}

/** A failed wait; its message shows what arrived instead, and likely causes. */
export class NotReceived extends Error {}

export interface StartOptions {
  /** Program and first arguments; `["waypost"]` by default. */
  command?: string[];
  /** Settings of the service, such as `{ per_second: 200 }`. */
  settings?: Record<string, string | number | boolean>;
  /** Real time until it responds; 60 s by default. */
  timeoutMs?: number;
}

export interface AttachOptions {
  /** The file that `waypost dev` writes. */
  envFile?: string;
  /** Base URL of the service, as this process reaches it. */
  apiUrl?: string;
  /** Base URL of the simulator, as this process reaches it. */
  graphUrl?: string;
}

export interface Callback {
  position: number;
  id: string;
  sequence: number;
  kind: string;
  message_id: string;
  phone: string;
  text: string;
  postback_text: string;
  reason: string;
  /** Of the response; 0 if the application did not respond. */
  status: number;
  response: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export interface PhoneMessage {
  wamid: string;
  type: string;
  text?: string;
  state: string;
  at_ms: number;
  callback_data?: string;
  buttons?: { index: number; type: string; text: string }[];
  [member: string]: unknown;
}

export interface Template {
  id: string;
  element_name: string;
  language_code: string;
  status: string;
  [member: string]: unknown;
}

export interface CallbackConditions {
  messageId?: string;
  phone?: Phone | string;
  text?: string;
  postbackText?: string;
}

export interface CallbackChanges {
  status?: number;
  version?: 2 | 3;
  modes?: string[];
  headers?: Record<string, string>;
}

/** A fault as the reference of faults describes it, without `waba_id`. */
export interface Fault {
  call?: string;
  webhook?: string;
  what: Record<string, unknown>;
  when?: Record<string, unknown>;
  [member: string]: unknown;
}

export function startWaypost(options?: StartOptions): Promise<Waypost>;
export function attachWaypost(options?: AttachOptions): Promise<Waypost>;

export class Waypost {
  readonly variables: Record<string, string>;
  readonly clock: Clock;
  /** End a server that was started here. */
  stop(): Promise<void>;
  control(method: string, path: string, body?: unknown): Promise<any>;
  createPartner(name?: string): Promise<Partner>;
  /** Let the hosts that programs have in their code lead here; needs Waypost on this machine, not in an image. */
  intercept(options?: { command?: string[]; timeoutMs?: number }): Promise<Interception>;
}

export class Interception {
  /** Variables for a program, in addition to its environment. */
  readonly env: Record<string, string>;
  /** Let the hosts lead there in this process too; false if this version of Node (before 24.14) cannot. */
  applyToProcess(): Promise<boolean>;
  /** Undo `applyToProcess()`, and end it. */
  stop(): Promise<void>;
}

export class Clock {
  /** Returns the time of the clock, in milliseconds. */
  advance(ms: number): Promise<number>;
  waitUntilIdle(): Promise<number>;
}

/** A rate of a partner's app. */
export interface Rate {
  rate: string;
  per: string;
  documented: string;
  service: string;
  app: string | null;
  source: "documented" | "setting" | "app";
  /** Null if the server limits no requests. */
  in_force: string | null;
}

export class Partner {
  readonly id: string;
  /** The variables of the application under test, under the names of `waypost-dev.env`. */
  readonly env: Record<string, string>;
  readonly inboxUrl: string;
  phone(name: string, number?: string): Promise<Phone>;
  forwardCallbacks(url: string, options?: CallbackChanges): Promise<void>;
  changeCallbacks(options: CallbackChanges): Promise<void>;
  /** Rates by row, such as `{ templates: "2/60s" }`; null removes one. Returns all rows. */
  changeRates(rates: Record<string, string | null>, options?: { reset?: boolean }): Promise<Rate[]>;
  callbacks(): Promise<Callback[]>;
  waitForCallback(kind?: string, conditions?: CallbackConditions & { timeoutMs?: number }): Promise<Callback>;
  noCallbackWithin(ms: number, kind?: string, conditions?: CallbackConditions): Promise<void>;
  approveTemplate(template: string, options?: { timeoutMs?: number }): Promise<Template>;
  rejectTemplate(template: string, reason?: string, options?: { timeoutMs?: number }): Promise<Template>;
  fault(fault: Fault): Promise<() => Promise<void>>;
  explain(): Promise<string>;
  delete(): Promise<void>;
}

export class Phone {
  readonly name: string;
  readonly number: string;
  write(text: string): Promise<string>;
  waitForMessage(
    text?: string,
    conditions?: { type?: string; messageId?: string; button?: string; timeoutMs?: number },
  ): Promise<PhoneMessage>;
  tap(message: PhoneMessage, button: string | number): Promise<string>;
  openFlow(message: PhoneMessage, options?: { restart?: boolean }): Promise<FlowSession>;
  /** The first step that the phone does not allow is an error that names field and rule. */
  playFlow(message: PhoneMessage, steps: FlowStep[]): Promise<FlowSession>;
}

/** One step of a person in a flow; `tap` has the text of a button, link, item or option, or its path. */
export type FlowStep =
  | { fill: Record<string, unknown> }
  | { choose: Record<string, string> }
  /** `content` is base64. */
  | { upload: { name: string; content?: string; media_id?: string; mime_type?: string; file_name?: string } }
  | { remove: Record<string, string> }
  | { tap: string }
  | { back: true }
  | { refresh: true }
  | { close: true };

/** What a phone shows of a flow, and what the last steps caused. */
export interface FlowSession {
  session_id: string;
  flow_id: string;
  flow_token: string;
  view: {
    state: "screen" | "busy" | "error" | "closed" | "completed" | "token_invalid";
    screen_id: string;
    title: string;
    components: { path: string; type: string; name?: string; label?: string; text?: string; error?: string }[];
    footer: string;
    error: string;
  };
  /** The screens, the shown one last. */
  history: string[];
  /** Of the shown screen. */
  data: Record<string, unknown>;
  events: { type: "exchange" | "opened_url" | "completed"; [member: string]: unknown }[];
}
