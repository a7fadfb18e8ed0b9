// What `pe_lib.rope.rotary_settings` and `python -m pe_lib` say of a config.json, in a browser.
//
// A port of pe_lib/rope/configuration.py, fields.py, scalings.py and of the words of
// pe_lib/__main__.py, in their order and with their sentences: tests/website/test_inspector.py holds
// it to them. As in Python, a whole number and a real one are two things: the first is a BigInt here,
// the second a Number. Objects have no prototype, so a field may have any name.

const ropeSettings = (() => {
  class CannotSay extends Error {}
  /** What a check of a field says; the reader puts the name of the family before it. */
  class BadValue extends Error {}
  class UnknownFamily extends CannotSay {}

  const object = (...parts) => Object.assign(Object.create(null), ...parts);
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  /** Whether Python takes a value for true. */
  const isTrue = (value) =>
    Array.isArray(value) ? value.length > 0
    : isObject(value) ? Object.keys(value).length > 0
    : typeof value === "bigint" ? value !== 0n
    : Number.isNaN(value) || Boolean(value);

  // ---- Words, as Python writes them

  const group = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

  /** A real number: repr(1.0) is 1.0, and an exponent begins at 1e+16. */
  function real(x) {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
    if (Object.is(x, -0)) return "-0.0";
    if (x === 0) return "0.0";
    const [digits, power] = x.toExponential().split("e");
    const exponent = Number(power);
    if (exponent < -4 || exponent >= 16) return `${digits}e${signed(exponent)}`;
    const plain = exponent < 0 ? x.toFixed(digits.replace(/\D/g, "").length - 1 - exponent) : String(x);
    return plain.includes(".") ? plain : `${plain}.0`;
  }
  const signed = (exponent) => `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;

  /** Python's ":g", of so many digits. */
  function general(value, digits = 6) {
    const x = Number(value);
    if (!Number.isFinite(x)) return real(x);
    if (x === 0) return Object.is(x, -0) ? "-0" : "0";
    const [mantissa, power] = x.toExponential(digits - 1).split("e");
    const exponent = Number(power);
    const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent < -4 || exponent >= digits) return `${bare(mantissa)}e${signed(exponent)}`;
    return bare(x.toFixed(digits - 1 - exponent));
  }

  /** At most six digits, with commas for thousands: `number` of pe_lib.doctor. */
  function number(value) {
    const rounded = Number(general(value));
    if (Math.abs(rounded) >= 1e15 || (rounded !== 0 && Math.abs(rounded) < 1e-4)) return general(rounded, 4);
    const [whole, rest] = general(Math.abs(rounded), 15).split(".");
    return (rounded < 0 ? "-" : "") + group(whole) + (rest ? `.${rest}` : "");
  }

  /** Python's ":.4f", also of a number that JavaScript would write with an exponent. */
  const fixed = (x, digits) => (Math.abs(x) < 1e21 ? x.toFixed(digits) : `${BigInt(x)}.${"0".repeat(digits)}`);

  /** [0, 1, 2, 5] as "0–2, 5". */
  function spans(numbers) {
    const parts = [];
    for (const each of numbers)
      if (parts.length && each === parts.at(-1)[1] + 1) parts.at(-1)[1] = each;
      else parts.push([each, each]);
    const shown = parts.slice(0, 4).map(([first, last]) => (first < last ? `${first}–${last}` : `${first}`));
    return shown.join(", ") + (parts.length > 4 ? ", …" : "");
  }

  function reprOfText(text) {
    const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
    const escaped = [...text].map((sign) => {
      const code = sign.codePointAt(0);
      if (sign === quote || sign === "\\") return `\\${sign}`;
      if (sign === "\n") return "\\n";
      if (sign === "\r") return "\\r";
      if (sign === "\t") return "\\t";
      if (code < 32 || (code >= 127 && code < 161) || code === 173)
        return `\\x${code.toString(16).padStart(2, "0")}`;
      return sign;
    });
    return quote + escaped.join("") + quote;
  }

  function plain(value) {
    if (value === null || value === undefined) return "None";
    if (value === true) return "True";
    if (value === false) return "False";
    return typeof value === "number" ? real(value) : String(value);
  }

  function repr(value) {
    if (typeof value === "string") return reprOfText(value);
    if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`;
    if (isObject(value))
      return `{${Object.entries(value).map(([name, each]) => `${reprOfText(name)}: ${repr(each)}`).join(", ")}}`;
    return plain(value);
  }

  const shortened = (text, head, tail) => text.slice(0, head) + "..." + text.slice(text.length - tail);

  /** The short form of a value for a message: Python's reprlib. */
  function brief(value, level = 6) {
    if (typeof value === "string") {
      const signs = [...value];
      const whole = reprOfText(signs.slice(0, 30).join(""));
      if ([...whole].length <= 30) return whole;
      const cut = [...reprOfText(signs.slice(0, 13).join("") + signs.slice(Math.max(signs.length - 14, 0)).join(""))];
      return cut.slice(0, 13).join("") + "..." + cut.slice(cut.length - 14).join("");
    }
    if (typeof value === "bigint") {
      const bits = (value < 0n ? -value : value).toString(2).length;
      if (bits > 2000) return `<an integer of ${bits} bits>`;
      const text = String(value);
      return text.length > 40 ? shortened(text, 18, 19) : text;
    }
    if (Array.isArray(value)) {
      if (level <= 0 && value.length) return "[...]";
      const parts = value.slice(0, 6).map((each) => brief(each, level - 1));
      return `[${[...parts, ...(value.length > 6 ? ["..."] : [])].join(", ")}]`;
    }
    if (isObject(value)) {
      const names = Object.keys(value).sort();
      if (level <= 0 && names.length) return "{...}";
      const parts = names.slice(0, 4).map((name) => `${brief(name, level - 1)}: ${brief(value[name], level - 1)}`);
      return `{${[...parts, ...(names.length > 4 ? ["..."] : [])].join(", ")}}`;
    }
    return plain(value);
  }

  // ---- JSON, with the sentences of Python's json, and whole numbers apart from real ones

  const MOST_DIGITS = 4300; // of a whole number that Python reads
  const ESCAPED = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
  const NAMED = { null: null, true: true, false: false, NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };

  function parse(text) {
    let at = 0;
    const fail = (what, where) => {
      const before = text.slice(0, where).split("\n");
      const signs = (part) => [...part].length;
      throw new CannotSay(
        `the text is not JSON: ${what}: line ${before.length} column ${signs(before.at(-1)) + 1} ` +
          `(char ${signs(text.slice(0, where))})`
      );
    };
    const skip = () => {
      while (" \t\n\r".includes(text[at] ?? "x")) at += 1;
    };
    const readText = () => {
      const begin = at;
      at += 1;
      let read = "";
      for (;;) {
        const from = at;
        while (at < text.length && text[at] !== '"' && text[at] !== "\\" && text[at] >= " ") at += 1;
        read += text.slice(from, at);
        if (at >= text.length) fail("Unterminated string starting at", begin);
        if (text[at] === '"') return (at += 1), read;
        if (text[at] !== "\\") fail("Invalid control character at", at);
        const sign = text[at + 1];
        if (sign === undefined) fail("Unterminated string starting at", begin);
        if (sign === "u") {
          const code = text.slice(at + 2, at + 6);
          if (!/^[0-9a-fA-F]{4}$/.test(code)) fail("Invalid \\uXXXX escape", at + 1);
          read += String.fromCharCode(parseInt(code, 16));
          at += 6;
        } else {
          if (!Object.hasOwn(ESCAPED, sign)) fail("Invalid \\escape", at);
          read += ESCAPED[sign];
          at += 2;
        }
      }
    };
    const readNumber = () => {
      const pattern = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
      pattern.lastIndex = at;
      const [found, whole, part, power] = pattern.exec(text) ?? fail("Expecting value", at);
      at += found.length;
      if (part || power) return Number(found);
      const digits = whole.replace("-", "").length;
      if (digits > MOST_DIGITS)
        throw new CannotSay(`a whole number must have at most ${MOST_DIGITS} digits, got one of ${digits}`);
      return BigInt(whole);
    };
    const readObject = () => {
      const read = object();
      at += 1;
      skip();
      if (text[at] === "}") return (at += 1), read;
      for (;;) {
        if (text[at] !== '"') fail("Expecting property name enclosed in double quotes", at);
        const name = readText();
        skip();
        if (text[at] !== ":") fail("Expecting ':' delimiter", at);
        at += 1;
        skip();
        read[name] = readValue();
        skip();
        if (text[at] === "}") return (at += 1), read;
        if (text[at] !== ",") fail("Expecting ',' delimiter", at);
        at += 1;
        skip();
      }
    };
    const readList = () => {
      const read = [];
      at += 1;
      skip();
      if (text[at] === "]") return (at += 1), read;
      for (;;) {
        read.push(readValue());
        skip();
        if (text[at] === "]") return (at += 1), read;
        if (text[at] !== ",") fail("Expecting ',' delimiter", at);
        at += 1;
        skip();
      }
    };
    const readValue = () => {
      if (text[at] === '"') return readText();
      if (text[at] === "{") return readObject();
      if (text[at] === "[") return readList();
      for (const [name, value] of Object.entries(NAMED))
        if (text.startsWith(name, at)) return (at += name.length), value;
      return readNumber();
    };
    try {
      skip();
      const value = readValue();
      skip();
      if (at < text.length) fail("Extra data", at);
      return value;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new CannotSay("the text is not JSON: its lists and objects are nested too deeply");
    }
  }

  // ---- Checks of single values: pe_lib/_checks.py

  function checkInteger(name, value, atLeast) {
    const allowed = atLeast === undefined ? "an integer" : `an integer of at least ${atLeast}`;
    if (typeof value !== "bigint" || (atLeast !== undefined && value < BigInt(atLeast)))
      throw new BadValue(`${name} must be ${allowed}, got ${brief(value)}`);
    return value;
  }

  function checkReal(name, value) {
    const isNumber = typeof value === "number" || typeof value === "bigint";
    const x = isNumber ? Number(value) : NaN;
    if (!isNumber || (typeof value === "bigint" && !Number.isFinite(x)))
      throw new BadValue(`${name} must be a finite real number, got ${brief(value)}`);
    if (!Number.isFinite(x)) throw new BadValue(`${name} must be a finite real number, got ${repr(value)}`);
    return x;
  }

  function checkEven(name, value) {
    const width = checkInteger(name, value);
    if (width <= 0n || width % 2n)
      throw new BadValue(`${name} must be a positive even integer, got ${brief(width)}`);
    if (width > BigInt(WIDEST)) throw new CannotSay(`${name} must be at most ${group(String(WIDEST))}, got ${group(String(width))}`);
    return Number(width);
  }

  const checkChoice = (name, value, allowed) => {
    if (!allowed.includes(value))
      throw new BadValue(`${name} must be one of ${allowed.map(repr).join(", ")}, got ${repr(value)}`);
  };

  /** Files have 32768.0 for a whole number. */
  const asWhole = (value) => (typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value);

  // ---- Fields of rope_parameters: pe_lib/rope/fields.py

  const AT_LEAST = { mscale: 0, mscale_all_dim: 0, factor: 1 };
  const LENGTHS = { seq_len: 1, max_position_embeddings: 1, original_max_position_embeddings: 2 };
  const DIVISORS = ["short_factor", "long_factor"];
  const OLDER_TYPES = { longrope: ["su", "yarn"], default: ["mrope"], mrope: ["default"] };
  const OF_EVERY_TYPE = ["rope_theta", "partial_rotary_factor", ...Object.keys(LENGTHS)];
  const NOT_FREQUENCIES = ["mrope_section", "mrope_interleaved", "llama_4_scaling_beta", "finetuned"];

  function typeOf(fields) {
    const { rope_type: type, type: older } = fields;
    if (type == null && older == null) return "default";
    if (type == null) {
      const named = older === "su" ? "longrope" : older;
      checkChoice("type", named, TYPES);
      return named;
    }
    checkChoice("rope_type", type, TYPES);
    if (older != null && older !== type && !(OLDER_TYPES[type] ?? []).includes(older))
      throw new BadValue(
        "rope_type and type, its older name, must say the same or one of them be left out, " +
          `got rope_type ${repr(type)} and type ${repr(older)}`
      );
    return type;
  }

  function checked(name, value) {
    if (Object.hasOwn(LENGTHS, name))
      return Number(checkInteger(name, name === "seq_len" ? value : asWhole(value), LENGTHS[name]));
    if (name === "truncate") {
      if (typeof value !== "boolean") throw new BadValue(`${name} must be True or False, got ${brief(value)}`);
      return value;
    }
    if (DIVISORS.includes(name)) {
      if (!Array.isArray(value) && typeof value !== "string")
        throw new BadValue(`${name} must be a list of positive numbers, got ${brief(value)}`);
      return [...value].map((each) => checkedNumber(`each number in ${name}`, each, { above: 0 }));
    }
    if (Object.hasOwn(AT_LEAST, name)) return checkedNumber(name, value, { atLeast: AT_LEAST[name] });
    const x = checkedNumber(name, value, { above: name === "rope_theta" ? 1 : 0 });
    if (name === "partial_rotary_factor" && x > 1)
      throw new BadValue(`partial_rotary_factor must be at most 1, got ${repr(value)}`);
    return x;
  }

  function checkedNumber(name, value, { atLeast = -Infinity, above = -Infinity }) {
    const x = checkReal(name, value);
    if (x < atLeast) throw new BadValue(`${name} must be at least ${atLeast}, got ${repr(value)}`);
    if (x <= above) throw new BadValue(`${name} must be greater than ${above}, got ${repr(value)}`);
    return x;
  }

  /** What a field may be, in words. */
  function allowed(name) {
    if (Object.hasOwn(LENGTHS, name)) return `an integer of at least ${LENGTHS[name]}`;
    if (DIVISORS.includes(name)) return "a list of positive numbers, one for each pair that turns";
    if (Object.hasOwn(AT_LEAST, name)) return `a number of at least ${AT_LEAST[name]}`;
    if (name === "rope_theta")
      return "a number greater than 1, which an older config.json has beside its rope_scaling";
    return "a number greater than 0";
  }

  function rotaryDim(headDim, part) {
    const dim = Math.trunc(headDim * part);
    if (dim === 0 || dim % 2)
      throw new BadValue(
        "partial_rotary_factor must leave a positive even number of entries that turn, " +
          `got ${real(part)} of head_dim = ${headDim}, which are ${dim}`
      );
    return dim;
  }

  // ---- Frequencies and attention factor: pe_lib/rope/scalings.py

  // For a rope_type the fields that it needs, those that it takes, and its formula.
  const SCALINGS = {
    default: { needs: [], takes: [], scale: (omega) => [omega, 1] },
    mrope: { needs: [], takes: [], scale: (omega) => [omega, 1] },
    linear: { needs: ["factor"], takes: [], scale: (omega, { factor }) => [omega.map((w) => w / factor), 1] },
    ntk: { needs: ["factor"], takes: [], scale: (omega, { factor }) => [ntk(omega, factor), 1] },
    dynamic: {
      needs: ["factor", "max_position_embeddings", "seq_len"],
      takes: [],
      scale: (omega, { factor, max_position_embeddings: trained, seq_len: length }) => [
        ntk(omega, 1 + factor * (Math.max(length / trained, 1) - 1)),
        1,
      ],
    },
    yarn: {
      needs: ["rope_theta", "original_max_position_embeddings"],
      takes: ["factor", "max_position_embeddings", "beta_fast", "beta_slow", "truncate", "attention_factor",
        "mscale", "mscale_all_dim"],
      scale: yarn,
    },
    longrope: {
      needs: ["short_factor", "long_factor", "original_max_position_embeddings", "seq_len"],
      takes: ["factor", "max_position_embeddings", "attention_factor"],
      scale: longrope,
    },
    llama3: {
      needs: ["factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"],
      takes: [],
      scale: llama3,
    },
    proportional: {
      needs: ["partial_rotary_factor"],
      takes: ["factor"],
      scale: (omega, { partial_rotary_factor: part, factor = 1 }) => {
        const turning = Math.trunc(part * omega.length);
        return [omega.map((w, i) => (i < turning ? w / factor : 0)), 1];
      },
    },
  };
  const TYPES = Object.keys(SCALINGS);

  /** The first pair stays as it is, the last one is divided by the factor. */
  function ntk(omega, factor) {
    return omega.map((w, i) => w * factor ** -(i / Math.max(omega.length - 1, 1)));
  }

  function yarn(omega, given) {
    const { rope_theta: base, original_max_position_embeddings: trained, truncate = true } = given;
    const { beta_fast: fast = 32, beta_slow: slow = 1, mscale = 0, mscale_all_dim: mscaleAll = 0 } = given;
    if (slow > fast) throw new BadValue(`beta_slow must be at most beta_fast = ${real(fast)}, got ${real(slow)}`);
    const factor = factorOrRatio(given);
    const [first, last] = endsOfRamp(omega.length, base, trained, fast, slow, truncate);
    const length = last !== first ? last - first : 0.001; // a ramp of no length is a step
    const frequencies = omega.map((w, i) => {
      const share = Math.min(Math.max((i - first) / length, 0), 1);
      return w * (1 - share) + (w / factor) * share;
    });
    const scale = (a) => 0.1 * a * Math.log(factor) + 1;
    const own = mscale !== 0 && mscaleAll !== 0 ? scale(mscale) / scale(mscaleAll) : scale(1);
    return [frequencies, given.attention_factor ?? own];
  }

  /** Pairs up to the first stay, pairs from the last on are divided. */
  function endsOfRamp(pairs, base, trained, fast, slow, truncate) {
    const pairThatMakes = (turns) => (-pairs * Math.log((2 * Math.PI * turns) / trained)) / Math.log(base);
    const lengthFor = (pair, turns) => 2 * Math.PI * turns * base ** (pair / pairs);
    let [first, last] = [pairThatMakes(fast), pairThatMakes(slow)];
    if (truncate) [first, last] = [Math.floor(first), Math.ceil(last)];
    const lastEntry = 2 * pairs - 1;
    const name = "original_max_position_embeddings";
    if (last < 0)
      throw new BadValue(
        `${name} must be greater than ${general(lengthFor(truncate ? -1 : 0, slow))} for beta_slow = ` +
          `${real(slow)}, or every pair makes too few turns within it, got ${trained}`
      );
    if (first > lastEntry)
      throw new BadValue(
        `${name} must be less than ${general(lengthFor(truncate ? lastEntry + 1 : lastEntry, fast))} for ` +
          `beta_fast = ${real(fast)} and rope_theta = ${real(base)}, or every pair makes too many turns ` +
          `within it, got ${trained}`
      );
    return [Math.max(first, 0), Math.min(last, lastEntry)];
  }

  function longrope(omega, given) {
    const { original_max_position_embeddings: trained } = given;
    for (const name of DIVISORS)
      if (given[name].length !== omega.length)
        throw new BadValue(
          `${name} must have one number for each of the ${omega.length} pairs that turn, got ` +
            `${given[name].length}: ${brief(given[name])}`
        );
    const factor = given.attention_factor ?? Math.sqrt(1 + Math.log(factorOrRatio(given)) / Math.log(trained));
    const divisors = given.seq_len > trained ? given.long_factor : given.short_factor;
    return [omega.map((w, i) => w / divisors[i]), factor];
  }

  function llama3(omega, given) {
    const { factor, original_max_position_embeddings: trained, low_freq_factor: low } = given;
    const high = given.high_freq_factor;
    if (low > high)
      throw new BadValue(`low_freq_factor must be at most high_freq_factor = ${real(high)}, got ${real(low)}`);
    const scaled = omega.map((w) => {
      const turns = (trained * w) / (2 * Math.PI);
      if (low === high) return (turns > low ? 1 : 1 / factor) * w; // a step, as in Llama 4 Scout
      const kept = Math.min(Math.max((turns - low) / (high - low), 0), 1);
      return ((1 - kept) * w) / factor + kept * w;
    });
    return [scaled, 1];
  }

  function factorOrRatio(given) {
    const { factor, max_position_embeddings: longest, original_max_position_embeddings: trained } = given;
    if (factor !== undefined) return factor;
    if (longest === undefined)
      throw new BadValue(
        "factor must be given, or max_position_embeddings, whose ratio to " +
          `original_max_position_embeddings takes its place: ${allowed("factor")}; got neither`
      );
    if (trained > longest)
      throw new BadValue(
        "original_max_position_embeddings must be at most max_position_embeddings = " +
          `${longest} where factor is left out, got ${trained}`
      );
    return longest / trained;
  }

  /** `rotary_frequencies`: frequencies, in radians a position, and the attention factor. */
  function frequenciesOf(headDim, parameters) {
    const { seq_len: length, ...others } = parameters;
    const fields = object({ partial_rotary_factor: 1 });
    for (const [name, value] of [...Object.entries(others), ["seq_len", length]])
      if (value != null && !NOT_FREQUENCIES.includes(name) && name !== "rope_type" && name !== "type")
        fields[name] = checked(name, value);
    const type = typeOf(parameters);
    if (type === "yarn" && parameters.truncate === null) fields.truncate = false; // as transformers reads it
    const { needs, scale } = SCALINGS[type];
    for (const name of ["rope_theta", ...needs])
      if (fields[name] === undefined)
        throw new BadValue(`${name} must be given for rope_type ${repr(type)}: ${allowed(name)}; got None`);
    const dim = type === "proportional" ? headDim : rotaryDim(headDim, fields.partial_rotary_factor);
    const unscaled = Array.from({ length: dim / 2 }, (_, i) => fields.rope_theta ** (-i / (dim / 2)));
    const [frequencies, attentionFactor] = scale(unscaled, fields);
    return { frequencies, attentionFactor, unscaled, base: fields.rope_theta };
  }

  // ---- A configuration: pe_lib/rope/configuration.py

  const PARTS = ["text_config", "llm_config", "language_config", "thinker_config", "talker_config", "decoder"];
  const OLDER = {
    rope_scaling: "rope_parameters",
    rotary_pct: "partial_rotary_factor",
    rotary_emb_base: "rope_theta",
    rotary_base: "rope_theta",
  };
  const OLDER_BASES = {
    rope_local_base_freq: "sliding_attention",
    local_rope_theta: "sliding_attention",
    swa_rope_theta: "sliding_attention",
    global_rope_theta: "full_attention",
    compress_rope_theta: "compress",
  };
  const ABOUT_ROTATION = /rope|rotary|alibi|nope_|position_embedding/;
  const READ = [
    "rope_parameters", "rope_theta", "partial_rotary_factor", "qk_rope_head_dim", "qk_nope_head_dim",
    "no_rope_layers", "no_rope_layer_interval", "max_position_embeddings", "original_max_position_embeddings",
    ...Object.keys(OLDER), ...Object.keys(OLDER_BASES),
  ];
  const HARMLESS = [null, false, 0, 0n, "rope", "rotary", "rotary_emb"]; // they change nothing
  const SIZES = [
    "num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim", "qk_rope_head_dim", "max_position_embeddings",
  ];
  const MORE_THAN_A_LAYOUT = ["qk_rope_head_dim", "no_rope_layers", "no_rope_layer_interval"];
  const UNSCALED = ["rope_theta", "partial_rotary_factor"]; // what is left in a layer that is not scaled
  const WITHOUT_ATTENTION = ["conv", "linear_attention", "mamba", "mamba2", "recurrent"];
  const MOST_LAYERS = 100_000n;
  const WIDEST = 65_536;

  let table = null; // of the families: pe_lib/rope/families.json

  function familyOf(modelType) {
    const known = typeof modelType === "string" ? table.families[modelType] : undefined;
    if (known) return known;
    throw new UnknownFamily(
      `model_type must be a family of the table, ${Object.keys(table.families).length} of transformers ` +
        `${table.transformers}, got ${repr(modelType)}: its layout is not known, and not guessed, if it ` +
        "rotates at all. To find it out, give its rotation to pe_lib.doctor.examine; then pass family= to rotary_settings: " +
        "the name of a family that shares its code, or " +
        '{"layout": "split"} or {"layout": "interleaved"}'
    );
  }

  /** The fields of the text model, if this is a larger model that has one. */
  function textModel(fields) {
    for (const name of PARTS) {
      if (!isObject(fields[name])) continue;
      const inner = textModel(object(fields[name]));
      if (inner.model_type == null) inner.model_type = familyOf(fields.model_type).text ?? fields.model_type;
      return inner;
    }
    return fields;
  }

  /** Of rope parameters those that belong to a kind of layers each. */
  const ofKinds = (parameters) =>
    Object.entries(parameters).filter(([kind, value]) => isObject(value) || (value === null && kind.endsWith("attention")));

  /** The fields about positions that nothing here reads, also those one level deeper. */
  /** Whether the code of a family reads a field by an older name; of one chosen on the page it is taken for granted. */
  const reads = (family, older) =>
    family.read === undefined || older === "rope_scaling" || (family.older_names ?? []).includes(older);

  function unreadFields(given, family) {
    const known = new Set([
      ...READ, "rotary_dim", family.width, family.rotary_dim, family.older_rotary_dim,
      family.bases, family.scaled, family.unturned?.list,
      ...Object.keys(family.switches ?? {}), ...Object.values(family.names ?? {}), ...Object.keys(family.defaults ?? {}),
    ]);
    for (const older of Object.keys(OLDER)) if (!reads(family, older)) known.delete(older);
    const matters = ([name, value]) => ABOUT_ROTATION.test(name) && !HARMLESS.includes(value);
    return Object.entries(given).flatMap(([name, value]) => {
      if (["attn_config", "attention_config"].includes(name) && isObject(value))
        return Object.entries(value).filter(matters).map(([inner]) => `${name}.${inner}`);
      return !known.has(name) && matters([name, value]) ? [name] : [];
    });
  }

  class Reader {
    constructor(given, family, length) {
      const isStored = family.read !== undefined; // and not a layout alone, chosen on the page
      const alone = ["rope_parameters", "rope_scaling"].every((name) => given[name] == null);
      const unread = (family.unread ?? []).filter((name) => alone && given[name] != null);
      Object.assign(this, {
        family,
        length,
        sources: { layout: isStored ? "the code of the family" : "the caller" },
        ignored: new Set(unread),
        unread: unreadFields(given, family),
      });
      const fields = object();
      for (const [name, value] of Object.entries(given))
        if (value !== null && !unread.includes(name)) fields[name] = value;
      for (const [name, other] of Object.entries(family.names ?? {}))
        if (other in fields) fields[name] ??= fields[other];
      for (const [older, name] of Object.entries(OLDER))
        if (older in fields && reads(family, older)) fields[name] ??= fields[older];
      this.given = fields;
      this.nulls = Object.keys(given).filter((name) => given[name] === null);
      this.defaults = family.defaults ?? {};
      this.modelType = plain(given.model_type);
      if (given.model_type !== null && typeof given.model_type === "object") this.modelType = repr(given.model_type);
    }

    field(name) {
      if (this.given[name] != null) return this.given[name];
      const own = this.defaults[name] ?? null;
      if (own !== null && SIZES.includes(name)) this.sources[name] = `the default of ${this.modelType}`;
      return own;
    }

    integer(name, atLeast = 1) {
      const value = this.field(name);
      if (value === null)
        throw new CannotSay(
          `${name} must be given: an integer of at least ${atLeast}; the file has none, and ` +
            `${repr(this.modelType)} has no default`
        );
      return checkInteger(name, asWhole(value), atLeast);
    }

    settings() {
      const kinds = this.kindsOfLayers();
      const parameters = this.parameters();
      const unturned = this.unturned(kinds);
      const bases = this.bases(kinds.length);
      const scaled = this.scaled();
      const made = new Map();
      const unique = new Map();
      const layers = kinds.map((kind, index) => {
        if (unturned(kind, index)) return null;
        const width = this.width(kind, index);
        const isScaled = scaled === null || scaled.has(index);
        const key = `${width} ${bases[index]} ${isScaled} ${kind === null ? "" : `:${kind}`}`;
        if (!made.has(key)) made.set(key, this.rotation(kind, width, bases[index], isScaled, parameters));
        const rotation = made.get(key);
        if (rotation === null) return null;
        const value = valueOf(rotation);
        if (!unique.has(value)) unique.set(value, rotation);
        return unique.get(value);
      });
      const own = [...new Set(layers)].filter(Boolean);
      return {
        model_type: this.modelType,
        kinds: own,
        layers: layers.map((each) => (each === null ? null : own.indexOf(each))),
        not_rotation: this.notRotation(kinds),
        sources: this.sources,
        ignored: [...this.ignored].sort(),
        unread: [...this.unread].sort(),
        shown: own.map((each) => this.shown(each, kinds.filter((_, index) => layers[index] === each))),
      };
    }

    /** What the page shows beside the settings: the length first trained for, and a window. */
    shown(rotation, kinds) {
      const parameters = Object.fromEntries(rotation.rope_parameters);
      const names = ["original_max_position_embeddings", "max_position_embeddings"];
      // Beside "linear" or "ntk" the longest length may be that of before the scaling or of after it.
      const isPlain = !["linear", "ntk"].includes(rotation.rope_type);
      const found = [
        [names[0], parameters[names[0]] ?? this.given[names[0]]],
        [names[1], isPlain ? this.field(names[1]) : undefined],
      ].find(([, value]) => typeof asWhole(value) === "bigint" && value > 0);
      const isSliding = kinds.every((kind) => kind === "sliding_attention");
      const window = isSliding ? this.given.sliding_window : undefined;
      return {
        unscaled: rotation.unscaled,
        trained: found ? Number(found[1]) : null,
        trainedFrom: found ? found[0] : null,
        window: typeof window === "bigint" && window > 0n ? Number(window) : null,
      };
    }

    // ---- Layers

    kindsOfLayers() {
      const count = this.integer("num_hidden_layers");
      if (count > MOST_LAYERS)
        throw new CannotSay(`num_hidden_layers must be at most 100,000, got ${group(String(count))}`);
      const number = Number(count);
      const field = "layer_types" in this.given ? "layer_types" : "layers_block_type";
      const kinds = this.given[field];
      if (kinds !== undefined) {
        if (!Array.isArray(kinds) || !kinds.every((kind) => typeof kind === "string"))
          throw new CannotSay(`${field} must be a list of names, got ${brief(kinds)}`);
        if (kinds.length !== number)
          throw new CannotSay(
            `${field} must have one name for each of num_hidden_layers = ${count} layers, got ${kinds.length}`
          );
        return kinds;
      }
      for (const [name, meaning] of Object.entries(this.family.numbers ?? {})) {
        if (!(name in this.given)) continue;
        const numbers = this.ofLayers(name, number, { mayBeLonger: true });
        for (const each of numbers) checkChoice(`each number in ${name}`, plain(each), Object.keys(meaning));
        return numbers.map((each) => meaning[plain(each)]);
      }
      return this.kindsOfTheClass(number);
    }

    /** The kinds of layers where a file does not list them, as the family's class deals them. */
    kindsOfTheClass(count) {
      const rule = this.family.kinds;
      if (rule === undefined) return Array(count).fill(null);
      const told = this.interval(rule.cycle);
      if (told === null) this.sources.layers = `the default of ${this.modelType}`;
      const cycle = told ?? rule.cycle;
      const { first = [], last = [] } = rule;
      const shift = rule.from_end ? cycle.length - (count % cycle.length) : 0;
      return Array.from({ length: count }, (_, i) => {
        if (i >= count - last.length) return last[i - count + last.length];
        return i < first.length ? first[i] : cycle[(i + shift) % cycle.length];
      });
    }

    /** What is repeated where a field says how often full attention comes. */
    interval(cycle) {
      for (const [name, where] of Object.entries(this.family.intervals ?? {})) {
        if (!(name in this.given)) continue;
        const step = Number(this.integer(name));
        if (step > WIDEST)
          throw new CannotSay(`${name} must be at most ${group(String(WIDEST))}, got ${group(String(this.integer(name)))}`);
        const full = cycle.at(where === "start" ? 0 : -1);
        const others = Array(step - 1).fill(cycle.find((kind) => kind !== full) ?? "sliding_attention");
        return where === "start" ? [full, ...others] : [...others, full];
      }
      return null;
    }

    /** A function that says which layers leave the rotation out. */
    unturned(kinds) {
      if (this.switched() === "none") return () => true;
      const rule = this.family.unturned ?? {};
      if (this.family.read === "function") {
        this.sources.layers = "not known: of this family the function alone was watched";
        return (kind) => WITHOUT_ATTENTION.includes(kind);
      }
      if (this.hasList(rule.list)) {
        const flags = this.ofLayers(rule.list, kinds.length);
        return (_, index) => !isTrue(flags[index]);
      }
      if (rule.list === "no_rope_layers") {
        const step = isTrue(this.field("no_rope_layer_interval")) ? Number(this.integer("no_rope_layer_interval")) : 4;
        return (_, index) => (index + 1) % step === 0;
      }
      if (rule.unless_null !== undefined && this.nulls.includes(rule.unless_null)) return () => false;
      return (kind) => (rule.types ?? []).includes(kind);
    }

    /** Whether the file has such a list, and anything in it. */
    hasList(name) {
      return name !== undefined && name in this.given && !(Array.isArray(this.given[name]) && this.given[name].length === 0);
    }

    /** A list of the file with a number for each layer. */
    ofLayers(name, count, { mayBeLonger = false } = {}) {
      const numbers = this.given[name];
      const fits = Array.isArray(numbers) && (mayBeLonger ? numbers.length >= count : numbers.length === count);
      if (!fits) throw new CannotSay(`${name} must have one number for each of ${count} layers, got ${brief(numbers)}`);
      return numbers.slice(0, count);
    }

    /** For each layer its own base, where the file has such a list. */
    bases(count) {
      const name = this.family.bases;
      if (!this.hasList(name)) return Array(count).fill(null);
      return this.ofLayers(name, count).map((each) => Number(checkReal(`each number in ${name}`, each)));
    }

    /** The layers whose frequencies are scaled, or null for all of them. */
    scaled() {
      const name = this.family.scaled;
      if (name === undefined || !(name in this.given)) return null;
      const layers = this.given[name];
      if (!Array.isArray(layers)) throw new CannotSay(`${name} must be a list of layers, got ${brief(layers)}`);
      return new Set(layers.map((each) => Number(checkInteger(`each number in ${name}`, each, 0))));
    }

    /** What a field of the file makes of the family's layout: another one, or "none". */
    switched() {
      for (const [name, effects] of Object.entries(this.family.switches ?? {})) {
        const value = this.field(name);
        const effect = value === null ? undefined : effects[String(isTrue(value))];
        if (effect === undefined) continue;
        this.sources.layout = name;
        return effect;
      }
      return null;
    }

    // ---- Fields of the rotation

    /** For each kind of layer, or under null for all of them. */
    parameters() {
      let given = this.given.rope_parameters ?? null;
      if (given !== null && !isObject(given))
        throw new CannotSay(`rope_parameters must be an object with fields, got ${brief(given)}`);
      const own = this.defaults.rope_parameters ?? {};
      const kinds = ofKinds(own);
      let nested = ofKinds(given ?? {});
      if (nested.length) {
        // These classes complete a kind that the file leaves out.
        if (this.family.flat) nested = [...new Map([...kinds, ...nested])];
        return new Map(nested.map(([kind, value]) => [kind, value === null ? null : this.completed(object(value), kind)]));
      }
      if (kinds.length) return this.dealt(kinds, given);
      const hasBase = "rope_theta" in this.given;
      if (given === null && (!hasBase || (own.rope_type ?? "default") !== "default")) {
        // A class whose default is a scaling keeps it where a file has a base alone.
        const isBeside = (name) => ["rope_theta", "partial_rotary_factor"].includes(name) && name in this.given;
        given = Object.fromEntries(Object.entries(own).filter(([name]) => !isBeside(name)));
        this.sources.frequencies = `the default of ${this.modelType}`;
      }
      const whole = this.completed(object(given ?? {}));
      const result = new Map([[null, whole]]);
      for (const [name, kind] of Object.entries(OLDER_BASES)) {
        if (!(name in this.given)) continue;
        const { rope_theta: _, ...other } = kind === "full_attention" ? whole : {};
        result.set(kind, this.completed(object(other, { rope_theta: this.given[name] })));
      }
      return result;
    }

    /** Which kinds of layers take a field of an older file: MiMo-V2's have two bases. */
    takers(kinds) {
      if (this.family.flat) return this.family.flat;
      if (!Object.keys(OLDER_BASES).some((name) => name in this.given)) return {};
      const guessed = { ...OLDER_BASES, rope_theta: "full_attention", rope_scaling: "full_attention" };
      const has = (wanted) => kinds.some(([kind, value]) => kind === wanted && value !== null);
      return Object.fromEntries(Object.entries(guessed).filter(([, kind]) => has(kind)).map(([name, kind]) => [name, [kind]]));
    }

    /** The fields of an older file, dealt to kinds of layers as the family's class deals them. */
    dealt(kinds, scaling) {
      const taken = this.takers(kinds);
      const found = new Map(kinds.map(([kind, value]) => [kind, value === null ? null : object(value)]));
      const bases = ["rope_theta", ...Object.keys(OLDER_BASES)].filter((name) => name in this.given);
      for (const name of bases) if (!(name in taken)) this.ignored.add(name);
      for (const name of bases)
        for (const kind of taken[name] ?? []) found.get(kind).rope_theta = this.given[name];
      if ("partial_rotary_factor" in this.given)
        for (const kind of taken.partial_rotary_factor ?? [])
          found.get(kind).partial_rotary_factor = this.given.partial_rotary_factor;
      const isScaled = scaling !== null && Object.keys(scaling).length > 0;
      if (isScaled) {
        if (!taken.rope_scaling)
          throw new CannotSay(
            `rope_parameters of ${repr(this.modelType)} must have fields for each kind of layer, ` +
              `${kinds.map(([kind]) => repr(kind)).join(", ")}, got ${brief(scaling)}`
          );
        for (const kind of taken.rope_scaling) Object.assign(found.get(kind), this.asTheClassReadsIt(scaling));
      }
      const older = this.family.older_rotary_dim;
      if (older !== undefined && older in this.given && !("partial_rotary_factor" in this.given))
        for (const fields of found.values()) delete fields?.partial_rotary_factor;
      const told = new Set(bases.flatMap((name) => taken[name] ?? []));
      const missing = kinds.map(([kind]) => kind).filter((kind) => !told.has(kind));
      if (missing.length) {
        const of = told.size ? ` for ${missing.join(", ")}` : "";
        this.sources[told.size || isScaled ? "base" : "frequencies"] = `the default of ${this.modelType}${of}`;
      }
      return found;
    }

    /** A scaling of an older file: some classes do not look at `type`, and one takes YaRN without its factor. */
    asTheClassReadsIt(scaling) {
      const told = object(Object.fromEntries(Object.entries(scaling).filter(([, value]) => value !== null)));
      if (!("rope_type" in told) && "type" in told) {
        const older = told.type;
        delete told.type;
        if (!this.family.flat || this.family.flat.type) told.rope_type = older;
        else this.ignored.add("type");
      }
      if (this.family.plain_yarn && told.rope_type === "yarn") told.attention_factor ??= 1;
      return told;
    }

    /** One kind's fields, with those that a file has beside them. */
    completed(given, kind = null) {
      const ofPart = this.family.flat?.partial_rotary_factor ?? [];
      const hasKinds = ofKinds(this.defaults.rope_parameters ?? {}).length > 0;
      const isDealt = (name) => name === "rope_theta" || !hasKinds || ofPart.includes(kind);
      for (const name of ["rope_theta", "partial_rotary_factor"].filter(isDealt))
        if (given[name] == null && this.field(name) !== null) given[name] = this.field(name);
      const own = this.defaults.rope_parameters ?? {};
      if (given.rope_theta == null && own.rope_theta != null) {
        given.rope_theta = own.rope_theta;
        this.sources.base = `the default of ${this.modelType}`;
      }
      if (given.partial_rotary_factor == null && "partial_rotary_factor" in own)
        given.partial_rotary_factor = own.partial_rotary_factor;
      return given;
    }

    rotation(kindOfLayer, width, base, isScaled, parameters) {
      const kind = this.family.labels?.[kindOfLayer] ?? kindOfLayer;
      let given = parameters.has(kind) ? parameters.get(kind) : parameters.get(null) ?? null;
      if (given === null) {
        if (parameters.has(kind)) return null; // the file says null: nothing turns
        throw new CannotSay(
          `rope_parameters must have fields for layers of the kind ${repr(kind)}, got those for ` +
            [...parameters.keys()].map(repr).join(", ")
        );
      }
      if (base !== null) given = object(given, { rope_theta: base });
      if (!isScaled) given = object(Object.fromEntries(Object.entries(given).filter(([name]) => UNSCALED.includes(name))));
      if (this.family.width === "qk_rope_head_dim") delete given.partial_rotary_factor; // the whole of its part turns
      const [fields, type] = this.fields(object(given), width);
      let found;
      try {
        found = frequenciesOf(width, fields);
      } catch (error) {
        if (!(error instanceof BadValue)) throw error;
        throw new CannotSay(`rope_parameters of ${repr(this.modelType)}: ${error.message}`);
      }
      const switched = this.switched();
      const { direction = 1 } = this.family;
      const layout = switched ?? this.family.layout;
      const written = switched ?? this.family.layout_out ?? layout;
      const turned = 2 * found.frequencies.length;
      return {
        head_dim: width,
        rotary_dim: turned,
        layout,
        layout_out: written,
        frequencies: found.frequencies,
        attention_factor: found.attentionFactor,
        direction: Number(direction),
        rotary_start: this.family.last ? width - turned : 0,
        pair_axes: this.pairAxes(given, turned / 2),
        base: found.base,
        rope_type: type,
        rope_parameters: Object.keys(given).sort().filter((name) => given[name] != null).map((name) => [name, given[name]]),
        unscaled: found.unscaled,
      };
    }

    /** The width of the vectors that the rotation of one layer is given. */
    width(kind, index) {
      let field = this.family.width ?? "head_dim";
      if (field === "head_dim") {
        const own = this.ofLayer(index).head_dim ?? null; // Gemma 4, since transformers 5
        if (own !== null) return checkEven("head_dim", own);
        for (const name of [...(kind === "full_attention" ? ["global_head_dim"] : []), "head_dim"])
          if (this.field(name) !== null) return checkEven(name, this.field(name));
        field = "hidden_size";
      }
      if (field !== "hidden_size") return checkEven(field, this.integer(field));
      const [width, heads] = [this.integer("hidden_size"), this.integer("num_attention_heads")];
      if (width % heads)
        throw new CannotSay(
          `head_dim must be given, or hidden_size = ${width} be a multiple of num_attention_heads = ${heads}`
        );
      return checkEven("hidden_size divided by num_attention_heads", width / heads);
    }

    ofLayer(index) {
      const own = this.given.per_layer_config;
      if (!isObject(own)) return {};
      this.numbered ??= new Map(Object.entries(own).filter(([name]) => /^\d+$/.test(name)).map(([n, v]) => [Number(n), v]));
      const value = this.numbered.get(index);
      return isObject(value) ? value : {};
    }

    /** What `rotary_frequencies` takes: completed as transformers does, and no more. */
    fields(given, width) {
      const named = [given.rope_type, given.type].find(isTrue) ?? "default";
      let type = named === "su" ? "longrope" : named;
      if (type === "dynamic" && given.alpha != null) {
        type = "ntk"; // HunYuan
        Object.assign(given, { rope_type: "ntk", type: null, factor: given.alpha });
      }
      checkChoice("rope_type", type, TYPES);
      Object.assign(given, this.lengths(given, type));
      if (given.attention_factor == null && given.short_mscale != null) {
        const trained = checkInteger("original_max_position_embeddings", asWhole(given.original_max_position_embeddings), 2);
        given.attention_factor = given[this.length > Number(trained) ? "long_mscale" : "short_mscale"] ?? null;
      }
      const field = this.fieldOfPart(given);
      if ("rotary_dim" in this.given && field === null) this.ignored.add("rotary_dim");
      if (field != null && this.field(field) !== null) given.partial_rotary_factor = Number(this.integer(field)) / width;
      const { needs, takes } = SCALINGS[type];
      const used = new Set([...needs, ...takes, ...OF_EVERY_TYPE, ...NOT_FREQUENCIES, "rope_type", "type"]);
      const others = ["alpha", "short_mscale", "long_mscale"];
      for (const [name, value] of Object.entries(given))
        if (value != null && !used.has(name) && !others.includes(name)) this.ignored.add(name);
      return [object(Object.fromEntries(Object.entries(given).filter(([name]) => used.has(name)))), type];
    }

    /** The field that says how many entries turn, where that is not `partial_rotary_factor`. */
    fieldOfPart(given) {
      const { rotary_dim, older_rotary_dim, read } = this.family;
      if (rotary_dim || given.partial_rotary_factor != null) return rotary_dim ?? null;
      const isStored = read !== undefined; // and not a layout alone, chosen on the page
      return older_rotary_dim ?? (isStored ? null : "rotary_dim");
    }

    /** The lengths of texts that stand beside the fields of the rotation, or are left out. */
    lengths(given, type) {
      const found = {};
      const longest = this.field("max_position_embeddings");
      if (longest !== null && given.max_position_embeddings == null) found.max_position_embeddings = longest;
      if (["yarn", "longrope", "llama3"].includes(type)) {
        const beside = this.given.original_max_position_embeddings;
        if (beside !== undefined) found.original_max_position_embeddings = beside;
        else if (given.original_max_position_embeddings == null && longest !== null)
          found.original_max_position_embeddings = longest;
      }
      if (["dynamic", "longrope"].includes(type)) found.seq_len = BigInt(this.length);
      return found;
    }

    pairAxes(given, pairs) {
      const rule = this.family.axes;
      if (rule === undefined) return null;
      const each = (axisOf) => Array.from({ length: pairs }, (_, i) => axisOf(i));
      if (rule === "alternate") return each((i) => i % 2);
      const sections = isTrue(given.mrope_section) ? given.mrope_section : this.family.sections;
      if (sections === undefined)
        throw new CannotSay("mrope_section must be given: how many pairs each axis of a position turns");
      if (!Array.isArray(sections))
        throw new CannotSay(`mrope_section must be a list of integers, got ${brief(sections)}`);
      const numbers = sections.map((one) => Number(checkInteger("mrope_section", one, 0)));
      if (numbers.reduce((sum, one) => sum + one, 0) !== pairs)
        throw new CannotSay(`mrope_section must add up to the ${pairs} pairs that turn, got [${numbers.join(", ")}]`);
      const of = numbers.length;
      if (rule === "interleaved") return each((i) => (i < of * numbers[i % of] ? i % of : 0));
      if (rule === "ernie") {
        if (of !== 3) throw new CannotSay(`mrope_section must have three numbers, got [${numbers.join(", ")}]`);
        const beside = 2 * Math.floor((numbers[0] + numbers[1]) / 2);
        return each((i) => (i < beside ? 1 + (i % 2) : 0));
      }
      return numbers.flatMap((number, axis) => Array(number).fill(axis));
    }

    // ---- What is not rotation

    notRotation(kinds) {
      const further = (this.family.further ?? []).map(
        (layout) => `other vectors in these layers, as an indexer's, turn in the layout ${layout}`
      );
      return [...this.norms(), ...further, this.softmaxScale(kinds), ...this.softCap(), ...this.temperature()];
    }

    softCap() {
      const name = this.family.soft_cap;
      if (name === undefined || !isTrue(this.field(name))) return [];
      const value = general(checkReal(name, this.field(name)));
      return [`scores capped, ${value}·tanh(score/${value}) (${name})`];
    }

    norms() {
      const { norms, norms_after: after, norms_plain: plain, norms_field: field } = this.family;
      if (norms === undefined || (field !== undefined && !isTrue(this.field(field)))) return [];
      const hint = plain ? "without weights" : "convert them with the weights";
      return [`${norms.join(", ")} ${after ? "after" : "before"} it (${hint})`];
    }

    softmaxScale(kinds) {
      for (const [name, before] of [["attention_multiplier", ""], ["query_pre_attn_scalar", "1/√"]])
        if (this.field(name) !== null)
          return `softmax scale ${before}${general(checkReal(name, this.field(name)))} (${name})`;
      if (this.family.scale !== undefined) return `softmax scale ${general(this.family.scale)}`;
      if (this.family.width !== "qk_rope_head_dim") {
        const share = this.family.scale_share ?? 1;
        const widths = [...new Set(kinds.map((kind, i) => Math.trunc(this.width(kind, i) * share)))].sort((a, b) => a - b);
        return widths.map((width) => `softmax scale 1/√${width}`).join(" and ");
      }
      const [turned, kept] = [this.integer("qk_rope_head_dim"), this.integer("qk_nope_head_dim", 0)];
      let text = `softmax scale 1/√${turned + kept} (of both parts, ${kept} + ${turned})`;
      const parameters = this.parameters().get(null) ?? {};
      const all = parameters.mscale_all_dim;
      if (isTrue(all) && ([parameters.rope_type, parameters.type].find(isTrue) ?? null) === "yarn") {
        const [factor, scale] = [this.factor(parameters), checkReal("mscale_all_dim", all)];
        const m = 0.1 * scale * Math.log(factor) + 1;
        text += ` times m² = ${fixed(m * m, 4)}, m = 0.1·${general(scale)}·ln ${general(factor)} + 1`;
      }
      return text;
    }

    /** YaRN's factor, or the ratio of lengths that takes its place. */
    factor(parameters) {
      const given = object(parameters, this.lengths(parameters, "yarn"));
      const fields = object();
      for (const name of ["factor", "max_position_embeddings", "original_max_position_embeddings"])
        if (given[name] != null) fields[name] = checked(name, given[name]);
      return factorOrRatio(fields);
    }

    temperature() {
      const said = [];
      for (const parameters of this.parameters().values()) {
        const beta = parameters?.llama_4_scaling_beta;
        if (isTrue(beta))
          said.push(
            `query temperature 1 + ${general(checkReal("llama_4_scaling_beta", beta))}·ln(1 + ` +
              `⌊p/${plain(parameters.original_max_position_embeddings)}⌋) after it, at position p`
          );
      }
      if (isTrue(this.field("attn_temperature_tuning")) && isTrue(this.field("floor_scale")))
        said.push(
          `query temperature 1 + ${general(checkReal("attn_scale", this.field("attn_scale")))}·ln(1 + ⌊(p+1)/` +
            `${plain(this.field("floor_scale"))}⌋), in the layers that do not turn`
        );
      return said;
    }
  }

  /** Two rotations with this text are equal in Python, for which 4 is 4.0. */
  function valueOf(rotation) {
    return JSON.stringify(rotation, (_, value) => (typeof value === "bigint" ? Number(value) : value));
  }

  /** What is known of a family that is not in the table: its layout, chosen on the page. */
  function ofLayout(given, layout) {
    if (typeof given.model_type === "string" && table.families[given.model_type])
      throw new CannotSay(
        `family must be left out: the table knows the code of ${repr(given.model_type)}, and more of ` +
          `it than ${brief({ layout })}`
      );
    const unanswered = MORE_THAN_A_LAYOUT.find((name) => given[name] != null);
    if (unanswered !== undefined)
      throw new CannotSay(
        `family must be the name of a family of the table whose code ${repr(given.model_type)} shares: ` +
          `its file has ${unanswered}, for which a layout alone does not answer`
      );
    return { layout };
  }

  /** `rotary_settings` of the text of a config.json; `layout` is that of a family not in the table. */
  function read(text, { length = null, layout = null } = {}) {
    const fields = parse(text);
    if (!isObject(fields))
      throw new CannotSay(`the text must be a JSON object with a field model_type, got ${brief(fields)}`);
    let given = textModel(fields);
    if ("kinds" in given && "layers" in given)
      throw new CannotSay(
        "config must be a config.json, got the answer of `python -m pe_lib --json`, which has been read already"
      );
    let family = layout === null ? familyOf(given.model_type) : ofLayout(given, layout);
    if (family.text) {
      given = object(given, { model_type: family.text });
      family = familyOf(family.text);
    }
    try {
      return new Reader(given, family, length ?? 1).settings();
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      throw new CannotSay(`${repr(given.model_type)}: ${error.message}`);
    }
  }

  // ---- In words: pe_lib/__main__.py and `describe_frequencies` of pe_lib.doctor

  const NAMES = {
    split: "rotate_half, NEOX, interleaved=False",
    interleaved: "GPT-J, NORM, interleaved=True",
  };

  /** The line through the points (i, y_i). */
  function line(y) {
    const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
    const [middle, height] = [(y.length - 1) / 2, mean(y)];
    const slope = y.reduce((sum, each, i) => sum + (i - middle) * (each - height), 0) /
      y.reduce((sum, _, i) => sum + (i - middle) ** 2, 0);
    return [slope, height - slope * middle];
  }

  const ON_A_LINE = 4e-6;
  const LARGEST_BASE = 1e100;
  const isGeometric = (logarithms) => {
    const [slope, start] = line(logarithms);
    return logarithms.every((y, i) => Math.abs(y - slope * i - start) <= 2 * ON_A_LINE);
  };

  /** The roundest number within a relative error. */
  function roundest(value, relative) {
    for (let digits = 1; digits <= 6; digits += 1) {
      const rounded = Number(value.toExponential(digits - 1));
      if (Math.abs(rounded / value - 1) <= relative) return rounded;
    }
    return value;
  }

  /** What became of a base: which pairs are slowed, and by what. */
  function describeFrequencies(omega) {
    const pairs = omega.length;
    const turning = omega.filter((w) => w > 0).length;
    const tail = turning === pairs ? "" : `; ${pairs - turning} of ${pairs} pairs stand still`;
    if (turning === 0) return "none";
    if (omega.slice(0, turning).some((w) => w <= 0)) return "in no order";
    if (turning === 1) return `one pair, ${general(omega[0])} a position${tail}`;
    const logarithms = omega.slice(0, turning).map(Math.log);
    let end = turning;
    while (end > 2 && !isGeometric(logarithms.slice(0, end))) end -= 1;
    const [slope, start] = line(logarithms.slice(0, end));
    if (!(-slope * pairs >= -0.01 && -slope * pairs <= Math.log(LARGEST_BASE))) {
      const [least, most] = [Math.min, Math.max].map((of) => of(...omega.slice(0, turning)));
      return `no single base: from ${general(most)} down to ${general(least)} a position${tail}`;
    }
    const base = roundest(Math.exp(-slope * pairs), 3e-6);
    const scale = Math.exp(-start);
    const divided = Math.abs(scale - 1) < 1e-4 ? "" : `, all divided by ${number(scale)}`;
    if (end === turning) return `base ${number(base)}, no pair slowed${divided}${tail}`;
    const ratio = omega.map((w, i) => (Math.exp(start) * base ** (-i / pairs)) / Math.max(w, 1e-300));
    const last = ratio[turning - 1];
    let slowed = turning - 1;
    while (slowed > 0 && Math.abs(ratio[slowed - 1] / last - 1) <= 4 * ON_A_LINE + 1e-4) slowed -= 1;
    const same = ratio.slice(slowed, turning);
    const divisor = roundest(same.reduce((sum, each) => sum + each, 0) / same.length, ON_A_LINE);
    if (turning - slowed >= 2 && divisor > 1)
      return `base ${number(base)}${divided}: pairs 0–${end - 1} kept, ${slowed}–${turning - 1} divided by ${number(divisor)}${tail}`;
    return `no single base: pairs 0–${end - 1} have ${number(base)}, and the last is ${number(divisor)} times slower than that${tail}`;
  }

  function part({ head_dim: width, rotary_dim: turned, rotary_start: start }) {
    if (turned === width) return `head ${width}, all of it turns`;
    return `head ${width}, entries ${start}–${start + turned - 1} turn`;
  }

  /** Base and scaling as the file says them, then what becomes of the pairs. */
  function frequencies(kind) {
    const given = object(Object.fromEntries(kind.rope_parameters));
    const base = `base ${number(kind.base)}`;
    if (["default", "mrope"].includes(kind.rope_type)) return base;
    let text = `${base}, ${kind.rope_type}`;
    const factor = kind.rope_type === "ntk" && given.alpha != null ? given.alpha : given.factor; // HunYuan
    if (factor != null) text += ` ×${general(factor)}`;
    if (given.original_max_position_embeddings != null)
      text += ` from ${group(String(asWhole(given.original_max_position_embeddings)))}`;
    const became = describeFrequencies(kind.frequencies);
    const rest = became.startsWith(base) ? became.slice(base.length) : became;
    return `${text}: ${rest.replace(/^[:, ]+/, "")}`;
  }

  function linesOfKind(kind, sources) {
    let layout = `${kind.layout} (${NAMES[kind.layout]})`;
    if (kind.layout_out !== kind.layout) layout += `, written ${kind.layout_out}`;
    const lines = [["layout", `${layout}   from ${sources.layout ?? ""}`]];
    if (kind.direction === -1) lines.push(["direction", "backward: the sign of the sine is the other one"]);
    lines.push(["frequencies", frequencies(kind)]);
    const from = sources.frequencies ?? sources.base;
    if (from !== undefined) lines.push(["", `from ${from}`]);
    let factor = fixed(kind.attention_factor, 4);
    if (kind.attention_factor !== 1) factor += ` on q and k (scores ×${fixed(kind.attention_factor ** 2, 3)})`;
    lines.push(["factor", factor]);
    if (kind.pair_axes !== null) lines.push(["axes", kind.pair_axes.join(", ")]);
    return lines;
  }

  /** A title, the lines of each kind of layer under a heading of their own, and those of the model. */
  function words(settings) {
    const { kinds, layers, sources, ignored, unread } = settings;
    const numbers = (wanted) => layers.flatMap((each, index) => (each === wanted ? [index] : []));
    const still = numbers(null);
    let how = still.length ? `${layers.length - still.length} rotated` : "all rotated";
    if (!kinds.length) how = "none rotated";
    const title = `${settings.model_type} · ${layers.length} layers, ${how}` + (kinds.length === 1 ? ` · ${part(kinds[0])}` : "");
    const before = still.length && kinds.length ? [["not rotated", `layers ${spans(still)}`]] : [];
    const blocks = kinds.map((kind, index) => ({
      heading: `layers ${spans(numbers(index))} · ${part(kind)}`,
      lines: linesOfKind(kind, sources),
    }));
    const after = [["not rotation", settings.not_rotation.join("; ")]];
    if ((sources.layers ?? "").startsWith("not known")) after.push(["not known", "which layers call the rotation"]);
    if (ignored.length) after.push(["ignored", `${ignored.join(", ")}: not used by the model's code`]);
    if (unread.length)
      after.push(["not read", `${unread.join(", ")}: what the model's code makes of it is not known`]);
    return { title, before, blocks, after };
  }

  /** What `python -m pe_lib` prints. */
  function describe(settings) {
    const { title, before, blocks, after } = words(settings);
    const row = ([name, text]) => `${name.padEnd(12)} ${text}`.trimEnd();
    const several = blocks.length > 1;
    return [
      title,
      ...before.map(row),
      ...blocks.flatMap(({ heading, lines }) => [...(several ? ["", heading] : []), ...lines.map(row)]),
      ...(several ? [""] : []),
      ...after.map(row),
    ].join("\n");
  }

  const useTable = (text) => void (table = parse(text));
  return { CannotSay, UnknownFamily, describe, general, group, number, read, repr, spans, useTable, words };
})();
