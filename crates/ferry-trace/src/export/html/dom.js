// Elements of the page. Text of the trace becomes text nodes only, never markup.

function element(name, ...content) {
  const made = document.createElement(name);
  made.append(...content);
  return made;
}

/** A name of the trace, isolated from the direction of the text around it. */
function named(text) {
  return element('bdi', text);
}

/** A button that goes to another thing; `input.js` listens for its clicks. */
function link(kind, index, text) {
  const button = element('button', named(text));
  button.type = 'button';
  button.className = 'link';
  Object.assign(button.dataset, { kind, index });
  return button;
}

function paragraph(...content) {
  return element('p', ...content.flat());
}

/** Terms with their values; empty ones are left out. */
function terms(pairs) {
  const list = element('dl');
  for (const [term, value] of pairs.filter(([, value]) => value !== '' && value !== null)) {
    list.append(element('div', element('dt', term), element('dd', value)));
  }
  return list;
}

export { element, link, named, paragraph, terms };
