// Colours that colour-blind readers can distinguish (Okabe and Ito), for light and dark pages.

const PALETTES = {
  light: {
    paper: '#ffffff', raised: '#f1f3f5', ink: '#1b1e23', faint: '#59606a', rule: '#d5d9de', grid: '#eceef1',
    fiber: '#aab2bd', scope: '#707a86', focus: '#1b1e23', found: '#d5008f',
    routes: ['#e69f00', '#0072b2', '#009e73', '#cc79a7'],
    causes: ['#009e73', '#56b4e9', '#f0d000', '#d55e00', '#cc79a7', '#8c929b', '#0072b2', '#c9cdd3'],
    whys: ['#d55e00', '#4b535e', '#0072b2'],
    states: ['#e3e7ec', '#56b4e9', '#9aa3ae'],
    gauges: ['#0072b2', '#d55e00', '#009e73'],
    requests: ['#0072b2', '#d55e00'],
  },
  dark: {
    paper: '#14171b', raised: '#1d2127', ink: '#eef0f3', faint: '#a9b1bc', rule: '#3a414a', grid: '#22272e',
    fiber: '#5a636f', scope: '#8b95a2', focus: '#ffffff', found: '#ff7ad0',
    routes: ['#e69f00', '#56b4e9', '#1fc296', '#e397c3'],
    causes: ['#1fc296', '#7cc8f5', '#f0e442', '#ff7a2e', '#e397c3', '#98a0ab', '#3d93d6', '#565e69'],
    whys: ['#ff7a2e', '#c3cad3', '#56b4e9'],
    states: ['#2a3038', '#2f79ab', '#6b7581'],
    gauges: ['#56b4e9', '#ff7a2e', '#1fc296'],
    requests: ['#56b4e9', '#ff7a2e'],
  },
};

/** The chosen palette with its shades; empty until `chooseColours`. */
const colours = {};

function mixed(colour, paper, part) {
  const channel = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mix = [0, 1, 2].map((i) => Math.round(channel(colour, i) * part + channel(paper, i) * (1 - part)));
  return `#${mix.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Black or white, whichever has more contrast to a colour. */
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((c) => c ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#000000' : '#ffffff';
}

/** Diagonal lines over a tint: time with a device or the kernel. */
function hatching(target, colour, paper) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const on = tile.getContext('2d');
  on.fillStyle = mixed(colour, paper, 0.25);
  on.fillRect(0, 0, 6, 6);
  on.strokeStyle = mixed(colour, paper, 0.62);
  on.lineWidth = 1.3;
  on.beginPath();
  for (const shift of [-6, 0, 6]) {
    on.moveTo(shift, 6);
    on.lineTo(shift + 6, 0);
  }
  on.stroke();
  return target.createPattern(tile, 'repeat');
}

/** Shades of a route or request: running, at the device, narrow, waiting to begin, and text. */
function shadesOf(target, colour, paper) {
  return {
    solid: colour,
    device: hatching(target, colour, paper),
    light: mixed(colour, paper, 0.5),
    queue: mixed(colour, paper, 0.22),
    ink: inkOn(colour),
  };
}

function isDark() {
  return document.documentElement.dataset.theme === 'dark'
    || (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
}

function chooseColours(target) {
  const palette = PALETTES[isDark() ? 'dark' : 'light'];
  const shades = (list) => list.map((colour) => shadesOf(target, colour, palette.paper));
  Object.assign(colours, palette, { routeShades: shades(palette.routes), requestShades: shades(palette.requests) });
}

export { chooseColours, colours, hatching, isDark, mixed };
